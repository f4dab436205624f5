"""Many registers: `kv` (put, append, get on strings) and `multi-register` (transactions).

kv: a value is [key, value], or {"key": .., "value": ..}; a key that was never put reads as "", and
null reads as that. Keys are independent.

multi-register: f is `txn`, its value a list of [read | write, register, value], done at once and in
order. A read of null has no information. `read` and `write` may also be f themselves, with the
value [register, value]. A transaction may combine registers, so the history is one object.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from fencepost.checker.lincheck.history import UNKNOWN, Call
from fencepost.checker.lincheck.model import Action, BadValue, Inconsistent, Model, frozen
from fencepost.checker.lincheck.models.register import LOCK_OPS

Mapping = frozenset[tuple[Hashable, Any]]  # a state: (key, value) of all keys that have one


def kv(init: Any = None) -> Model:
    """Build strings by key. `init`: an object {key: string}, or null for no keys."""
    if init is not None and not (
        isinstance(init, dict) and all(isinstance(text, str) for text in init.values())
    ):
        raise BadValue(f"kv starts with an object of strings, not {init!r:.40}")
    return Model(
        name="kv",
        initial=frozenset((init or {}).items()),
        action=_kv_action,
        step=_kv_step,
        functions=frozenset({"put", "append", "get"}),
        partition=lambda call: _pair(call, call.value)[0],
        observes=lambda action: action.f == "get",
        cells=lambda action: frozenset({action.owner}),
        reaches=_reaches,
        resets=lambda action: action.f == "put",
        replaces=lambda action: action.f == "put",
        rests_on=_rests_on,
        show=_show,
    )


def _kv_action(call: Call) -> Action | None:
    key, text = _pair(call, call.value)
    if call.type == "fail":
        return None
    if call.f == "get":
        if call.type != "ok" or call.result is UNKNOWN:
            return None
        result = call.result
        if isinstance(result, dict | list | tuple):
            result = _pair(call, result)[1]
        return Action("get", result=_text(call, "" if result is None else result), owner=key)
    return Action(call.f, _text(call, text), owner=key)


def _pair(call: Call, value: Any) -> tuple[Hashable, Any]:
    if isinstance(value, dict) and "key" in value:
        return _object(value["key"]), value.get("value")
    if isinstance(value, list | tuple) and len(value) == 2:
        return _object(value[0]), value[1]
    if call.f == "get" and isinstance(value, str | int):
        return _object(value), None
    raise BadValue(f"{call.f} needs [key, value], not {value!r:.40}")


def _object(key: Any) -> Hashable:
    """Return the key of an object: a keyword of EDN is the same as its name, which --init has."""
    return str(key) if isinstance(key, str) else frozen(key)


def _text(call: Call, value: Any) -> str:
    if not isinstance(value, str):
        raise BadValue(f"{call.f} works on strings, not on {value!r:.40}")
    return value


def _kv_step(state: Mapping, action: Action) -> Mapping | Inconsistent:
    f, text, result, key = action
    if f == "get" and (key, result) in state:  # the common case, for one look-up
        return state
    found = next((own for name, own in state if name == key), None)
    if f == "get":
        if found is None and result == "":
            return state
        return Inconsistent(f"can't read {result!r:.60} from {key!r}: it is {found or ''!r:.60}")
    entry = (key, text if f == "put" or found is None else found + text)
    return (
        frozenset({entry})
        if (len(state) < 2 and found is not None) or not state
        else (state - {(key, found)} | {entry})
    )


def _reaches(state: Mapping, action: Action) -> bool:
    """Return whether a get stays possible: appends only lengthen, so its result must begin with the
    current value."""
    result: str = action.result
    for key, text in state:
        if key == action.owner:
            return result.startswith(text)
    return True


def _rests_on(action: Action, other: Action) -> bool:
    return (
        action.f == "get" != other.f
        and action.owner == other.owner
        and other.value in action.result
    )


def multi_register(init: Any = None) -> Model:
    """Build registers by name. `init`: an object {register: value}; others start as null."""
    if init is not None and not isinstance(init, dict):
        raise BadValue(f"multi-register starts with an object of registers, not {init!r:.40}")
    return Model(
        name="multi-register",
        initial=frozenset((frozen(key), frozen(value)) for key, value in (init or {}).items()),
        action=_txn_action,
        step=_txn_step,
        functions=frozenset({"txn", "read", "write"}),
        ignored=LOCK_OPS,
        observes=lambda action: all(f == "read" for f, _, _ in action.value),
        cells=lambda action: frozenset(key for _, key, _ in action.value),
        show=_show,
    )


def _txn_action(call: Call) -> Action | None:
    if call.type == "fail":
        return None
    value = call.result if call.type == "ok" else call.value
    if value is UNKNOWN or value is None:
        value = call.value
    parts = [_part(part) for part in _parts(call, value)]
    if call.type != "ok":
        parts = [part for part in parts if part[0] == "write"]
    parts = [part for part in parts if part[0] == "write" or part[2] is not None]
    return Action("txn", tuple(parts)) if parts else None


def _parts(call: Call, value: Any) -> list[Any]:
    if call.f != "txn":
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise BadValue(f"{call.f} needs [register, value], not {value!r:.40}")
        return [[call.f, *value]]
    if not isinstance(value, list | tuple):
        raise BadValue(f"txn needs a list of [f, register, value], not {value!r:.40}")
    return list(value)


def _part(part: Any) -> tuple[str, Hashable, Hashable]:
    names = {"r": "read", "read": "read", "w": "write", "write": "write"}
    if not isinstance(part, list | tuple) or len(part) != 3 or part[0] not in names:
        raise BadValue(f"a part of a txn is [read or write, register, value], not {part!r:.40}")
    return names[part[0]], _object(part[1]), frozen(part[2])


def _txn_step(state: Mapping, action: Action) -> Mapping | Inconsistent:
    values = dict(state)
    for f, key, value in action.value:
        if f == "write":
            values[key] = value
        elif values.get(key) != value:
            return Inconsistent(f"can't read {value!r} from {key}: it is {values.get(key)!r}")
    return frozenset(values.items())


def _show(state: Mapping) -> str:
    pairs = sorted(state, key=repr)
    return "{" + ", ".join(f"{key}: {value!r}" for key, value in pairs) + "}"
