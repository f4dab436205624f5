"""Executes the scripts of fencepost's own locks and guards in Python, thirty times as fast as in
Lua.

A script is recognised by its text. tests/hunt/models/test_scripts.py compares each with the Lua
script on random databases. Any other script runs in Lua.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.hunt.models.redis.commands import execute
from fencepost.hunt.models.redis.lua import Evaluate
from fencepost.hunt.models.redis.store import MemberSet, Scores, Store
from fencepost.workloads.locks.redis import (
    ACQUIRE_COUNTED,
    ACQUIRE_PAIRED,
    EXTEND,
    RELEASE,
    RELEASE_PAIRED,
)
from fencepost.workloads.resources.redis_register import write_script
from fencepost.workloads.resources.registry import GUARDS


def _get(store: Store, key: str) -> Any:
    value = store.look(key)
    return value if type(value) is str or value is None else execute(store, "GET", [key])


def _taken(store: Store, keys: Sequence[str], args: Sequence[str]) -> bool:
    return execute(store, "SET", [keys[0], args[0], "NX", "PX", args[1]]) is None


def _acquire_counted(store: Store, keys: Sequence[str], args: Sequence[str]) -> Any:
    return None if _taken(store, keys, args) else execute(store, "INCR", [keys[1]])


def _acquire_paired(store: Store, keys: Sequence[str], args: Sequence[str]) -> Any:
    if _taken(store, keys, args):
        return None
    major = execute(store, "INCR", [keys[1]])
    execute(store, "ZADD", [keys[2], str(major), str(major)])
    lowest = execute(store, "ZRANGE", [keys[2], "0", "0"])[0]
    return [major, int(_number(lowest))]


def _release(store: Store, keys: Sequence[str], args: Sequence[str]) -> Any:
    return int(store.delete(keys[0])) if _get(store, keys[0]) == args[0] else 0


def _release_paired(store: Store, keys: Sequence[str], args: Sequence[str]) -> Any:
    if _get(store, keys[0]) != args[0]:
        return 0
    if args[2] == "1":
        execute(store, "ZREMRANGEBYSCORE", [keys[1], "-inf", args[1]])
    else:
        execute(store, "ZREM", [keys[1], args[1]])
    return int(store.delete(keys[0]))


def _extend(store: Store, keys: Sequence[str], args: Sequence[str]) -> Any:
    if _get(store, keys[0]) != args[0]:
        return 0
    return execute(store, "PEXPIRE", [keys[0], args[1]])


def _number(text: str) -> float:
    """Convert a field as Lua's tonumber does. Raises ValueError for nil."""
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _seen(store: Store, key: str, field: str) -> float:
    found = execute(store, "HGET", [key, field])
    return -1 if found is None else _number(found)


def _stored(store: Store, key: str, args: Sequence[str]) -> Any:
    fields = store.look(key)
    if isinstance(fields, dict) and not isinstance(fields, Scores | MemberSet):
        seen = fields.get("version", "0")
        if (
            seen.isdecimal()
            and seen.isascii()
            and len(seen) < 18
            and str(version := int(seen)) == seen
        ):
            fields["value"], fields["version"] = args[1], str(version + 1)
            return [1, version + 1]
    execute(store, "HSET", [key, "value", args[1]])
    return [1, execute(store, "HINCRBY", [key, "version", "1"])]


def _write(store: Store, keys: Sequence[str], args: Sequence[str]) -> Any:
    return _stored(store, keys[0], args)


def _write_fenced(store: Store, keys: Sequence[str], args: Sequence[str]) -> Any:
    highest = _seen(store, keys[0], "highest")
    if int(args[3]) < highest:
        return [0, int(highest)]
    execute(store, "HSET", [keys[0], "highest", args[3]])
    return _stored(store, keys[0], args)


def _write_fenced_compared(store: Store, keys: Sequence[str], args: Sequence[str]) -> Any:
    highest = _seen(store, keys[0], "highest")
    if int(args[3]) < highest:
        return [0, f"token {highest:.14g}"]
    if int(args[2]) != (version := _version(store, keys[0])):
        return [0, f"version {version:.14g}"]
    execute(store, "HSET", [keys[0], "highest", args[3]])
    return _stored(store, keys[0], args)


def _version(store: Store, key: str) -> float:
    found = execute(store, "HGET", [key, "version"])
    return 0 if found is None else _number(found)


def _write_compared(store: Store, keys: Sequence[str], args: Sequence[str]) -> Any:
    version = _version(store, keys[0])
    return [0, int(version)] if int(args[2]) != version else _stored(store, keys[0], args)


def _write_new_value(store: Store, keys: Sequence[str], args: Sequence[str]) -> Any:
    key, token = keys[0], args[3]
    last = execute(store, "HGET", [key, "last"])
    if last != token:
        if execute(store, "HEXISTS", [key, f"shown:{token}"]):
            return [0, last]
        execute(store, "HSET", [key, "last", token, f"shown:{token}", "1"])
    return _stored(store, key, args)


def _write_paired(store: Store, keys: Sequence[str], args: Sequence[str]) -> Any:
    key, token = keys[0], int(args[3])
    highest = _seen(store, key, "highest")
    accepted = int(args[4]) > highest or token == _seen(store, key, "writer")
    if token > highest:
        writer = args[3] if accepted else "-1"
        execute(store, "HSET", [key, "highest", args[3], "writer", writer])
    return _stored(store, key, args) if accepted else [0, int(highest)]


_WRITES: Mapping[str, Evaluate] = {
    "none": _write,
    "deadline": _write,
    "fenced": _write_fenced,
    "fenced-version": _write_fenced_compared,
    "new-value": _write_new_value,
    "compare-and-set": _write_compared,
    "paired": _write_paired,
}
KNOWN: Mapping[str, Evaluate] = {
    ACQUIRE_COUNTED: _acquire_counted,
    ACQUIRE_PAIRED: _acquire_paired,
    RELEASE: _release,
    RELEASE_PAIRED: _release_paired,
    EXTEND: _extend,
    **{write_script(GUARDS[name].rules["lua"]): write for name, write in _WRITES.items()},
}
"""The Python versions, by the text of the script."""
