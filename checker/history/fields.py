"""Checks the types of an op's value when a history is read (docs/protocol.md).

Unknown fields may be anything. A known field of another type would crash a checker far from the
line that caused it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

# No real time, version or token is larger, and counting up to a huge one would not end.
_LEAST, _MOST = -(2**127), 2**127

Check = tuple[Callable[[Any], bool], str]


def _is_number(value: Any) -> bool:
    return value is None or (
        type(value) in (int, float) and _LEAST <= value < _MOST
    )  # fmt: skip


def _is_whole(value: Any) -> bool:
    return value is None or (type(value) is int and _LEAST <= value < _MOST)


def _is_name(value: Any) -> bool:
    return value is None or type(value) in (str, int)


def _is_text(value: Any) -> bool:
    return type(value) is str


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(type(name) is str for name in value)


def _are_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(_are_names(pair) and len(pair) == 2 for pair in value)


def _are_arguments(value: Any) -> bool:
    return isinstance(value, dict) and ("links" not in value or _are_pairs(value["links"]))


def _is_receipt(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict):
        return False
    processes = value.get("processes", [])
    return isinstance(processes, list) and all(type(each) in (int, str) for each in processes)


_NUMBER = (_is_number, "a number of at most 128 bits, or null")
_WHOLE = (_is_whole, "an integer of at most 128 bits, or null")
_NAME = (_is_name, "a name")
_NODES = (_are_names, "a list of nodes")

_OF_CLIENTS: Mapping[str, Check] = {
    "deadline": _NUMBER,
    "ttl": _NUMBER,
    "assumed": (lambda value: isinstance(value, bool), "true or false"),
    "token": _WHOLE,
    "version": _WHOLE,
    "stored": _WHOLE,
    "lock": _NAME,
    "hold": _NAME,
    "resource": _NAME,
    "mode": _NAME,
    "granted_by": (lambda value: value is None or _are_names(value), "a list of nodes, or null"),
}
_OF_NEMESIS: Mapping[str, Check] = {
    "fault": (_is_text, "a text"),
    "phase": (_is_text, "a text"),
    "targets": _NODES,
    "impairs": _NODES,
    "stops": _NODES,
    "links": (_are_pairs, "a list of pairs of nodes"),
    "forgets": (lambda value: isinstance(value, bool), "true or false"),
    "loses": (lambda value: isinstance(value, bool), "true or false"),
    "only_messages": (lambda value: isinstance(value, bool), "true or false"),
    "rejects": (lambda value: isinstance(value, bool), "true or false"),
    "arguments": (_are_arguments, "an object, its links pairs of nodes"),
    "receipt": (_is_receipt, "an object, its processes a list of numbers"),
}


def check(value: Mapping[str, Any], nemesis: bool) -> None:
    """Raise ValueError, naming the field, if a known field has another type."""
    known = _OF_NEMESIS if nemesis else _OF_CLIENTS
    for name, what in value.items():
        rule = known.get(name)
        if rule is not None and not rule[0](what):
            raise ValueError(f"value.{name} {what!r:.60} is not {rule[1]}")
