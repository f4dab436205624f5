"""Checks the arguments of Redis' commands: integers, key types, and Redis' errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from fencepost.hunt.models.redis.store import Store

WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
NOT_INTEGER = "ERR value is not an integer or out of range"
SYNTAX = "ERR syntax error"
LARGEST = 2**63 - 1
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)\Z")

Arguments = Sequence[str]
Command = Callable[[Store, Arguments], Any]


class CommandError(Exception):
    """A command is refused, with Redis' message."""


def integer(text: str) -> int:
    if not _INTEGER.match(text) or text == "-0" or not -LARGEST - 1 <= int(text) <= LARGEST:
        raise CommandError(NOT_INTEGER)
    return int(text)


def value_of(store: Store, key: str, kind: type) -> Any:
    """Return the value of a key, or None if it does not exist. Raises CommandError for another
    type."""
    value = store.look(key)
    if value is not None and type(value) is not kind:
        raise CommandError(WRONG_TYPE)
    return value


def made(store: Store, key: str, kind: type) -> Any:
    """Return the value of a key; create an empty one if it does not exist."""
    value = value_of(store, key, kind)
    if value is None:
        value = kind()
        store.put(key, value)
    return value


def between(values: list[str], first: int, last: int) -> list[str]:
    """Return the values from one index to another, both inclusive; -1 is the last index."""
    start = max(0, first + len(values) if first < 0 else first)
    stop = last + len(values) if last < 0 else last
    return values[start : stop + 1] if stop >= 0 else []
