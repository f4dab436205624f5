"""Patches of objects: merge patches (RFC 7386), and JSON patches (RFC 6902)."""

from __future__ import annotations

import copy
from typing import Any

from fencepost.hunt.sim.unknown import Unknown


class Failed(Exception):
    """An operation cannot be applied to the object."""


def merged(old: Any, patch: Any, strategic: bool = False) -> Any:
    """Return a value after a merge patch.

    A strategic one keeps the nulls of an object that is new (strategicpatch/patch.go, mergeMap).
    """
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    found = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif strategic and name not in found:
            found[name] = copy.deepcopy(value)
        else:
            found[name] = merged(found.get(name), value, strategic)
    return found


def must_be_plain(value: Any) -> None:
    """Raise Unknown if a strategic merge patch has parts that the server treats in its own way: it
    merges lists, and cuts integers to 32 bits."""
    for one in value.values() if isinstance(value, dict) else ():
        must_be_plain(one)
    if isinstance(value, list):
        raise Unknown("the model of Kubernetes has no strategic merge of lists")
    if isinstance(value, int) and not -(1 << 31) <= value < 1 << 31:
        raise Unknown("the model of Kubernetes cuts no integers to 32 bits")


def operated(old: Any, operations: list[Any]) -> Any:
    """Return an object after the operations of a JSON patch.

    Raises:
        Failed: one of them cannot be applied.
        Unknown: one is not modelled.
    """
    found = copy.deepcopy(old)
    for one in operations:
        match one:
            case {"op": "add" | "replace", "path": str(path), "value": value}:
                # A replace of a field that is missing adds it, against RFC 6902.
                _put(found, path, copy.deepcopy(value))
            case {"op": "remove", "path": str(path)}:
                _take(found, path)
            case {"op": "test", "path": str(path), "value": value}:
                if _at(found, path) != value:
                    raise Failed(f"testing value {path} failed: test failed")
            case {"op": "copy", "path": str(path), "from": str(source)}:
                _put(found, path, copy.deepcopy(_loosely(found, source)))
            case {"op": "move", "path": str(path), "from": str(source)}:
                _put(found, path, _take(found, source))
            case _:
                raise Unknown(f"the model of Kubernetes has no operation {one} of a JSON patch")
    return found


def _parent(found: Any, path: str) -> tuple[dict[str, Any], str]:
    *way, last = (step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:])
    for step in way:
        found = found.get(step) if isinstance(found, dict) else None
    if isinstance(found, list):
        raise Unknown("the model of Kubernetes patches no elements of lists")
    if not isinstance(found, dict):
        raise Failed(path)
    return found, last


def _at(found: Any, path: str) -> Any:
    parent, last = _parent(found, path)
    if last not in parent:
        raise Failed(path)
    return parent[last]


def _loosely(found: Any, path: str) -> Any:
    """Return a value, or None if only the last step of its path is missing."""
    parent, last = _parent(found, path)
    return parent.get(last)


def _put(found: Any, path: str, value: Any) -> None:
    parent, last = _parent(found, path)
    parent[last] = value


def _take(found: Any, path: str) -> Any:
    _at(found, path)
    parent, last = _parent(found, path)
    return parent.pop(last)
