"""Redis' commands for all keys, for whole hashes, and for sets.

Redis returns names in the order of its hash tables, and SCAN in pages. Here names are in the order
of creation, and each SCAN returns all that is left, as Redis may.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from fencepost.hunt.models.redis.arguments import (
    SYNTAX,
    Arguments,
    Command,
    CommandError,
    integer,
    made,
    remove,
    value_of,
)
from fencepost.hunt.models.redis.globs import matches
from fencepost.hunt.models.redis.replies import OK, Members, double
from fencepost.hunt.models.redis.store import MemberSet, Scores, Store
from fencepost.hunt.models.redis.stream_value import Stream

_TYPES: dict[type, str] = {
    str: "string",
    dict: "hash",
    Scores: "zset",
    list: "list",
    MemberSet: "set",
    Stream: "stream",
}


_CURSOR = re.compile(r"[-+]?[0-9]+\Z")


def type_name(value: Any) -> str:
    return "none" if value is None else _TYPES[type(value)]


def _all(store: Store) -> list[str]:
    return [key for key in [*store.values] if store.look(key) is not None]


def _keys(store: Store, args: Arguments) -> Any:
    return [key for key in _all(store) if matches(args[0], key)]


def _flush(store: Store, args: Arguments) -> Any:
    if len(args) > 1 or (args and args[0].upper() not in ("SYNC", "ASYNC")):
        raise CommandError(SYNTAX)
    gone = [*store.values]
    store.values.clear()
    store.expires.clear()
    for key in gone:
        store.signal("", "", key)
    return OK


def _scan(store: Store, args: Arguments) -> Any:
    cursor, *words = args
    pattern, kind = _options(cursor, words, ("TYPE",))
    found = _all(store) if _number(cursor) == 0 else []
    return ["0", [
        key for key in found
        if matches(pattern, key) and kind in ("", type_name(store.look(key)))
    ]]  # fmt: skip


def _scan_in(kind: type, shown: Callable[[Any], Mapping[str, Any]]) -> Command:
    def scan(store: Store, args: Arguments) -> Any:
        key, cursor, *words = args
        place = _number(cursor)
        found = value_of(store, key, kind)
        if found is None:
            return ["0", []]
        pattern, _ = _options(cursor, words, ())
        # Redis returns a small hash or sorted set whole, whatever the cursor.
        items = {} if place and kind is MemberSet else shown(found)
        return ["0", [
            part for name, value in items.items() if matches(pattern, name)
            for part in ((name,) if value is None else (name, value))
        ]]  # fmt: skip

    return scan


def _number(cursor: str) -> int:
    """Return a cursor, as C's strtoul reads it."""
    if not cursor:
        return 0
    if not _CURSOR.match(cursor) or abs(int(cursor)) >= 2**64:
        raise CommandError("ERR invalid cursor")
    return int(cursor)


def _options(cursor: str, words: list[str], more: tuple[str, ...]) -> tuple[str, str]:
    """Return the pattern and the type that SCAN asks for."""
    _number(cursor)
    pattern, kind = "*", ""
    while words:
        word = words.pop(0).upper()
        if word not in ("MATCH", "COUNT", *more) or not words:
            raise CommandError(SYNTAX)
        value = words.pop(0)
        if word == "COUNT" and integer(value) < 1:
            raise CommandError(SYNTAX)
        if word == "MATCH":
            pattern = value
        if word == "TYPE":
            kind = value.lower()
    return pattern, kind


def _fields(store: Store, key: str) -> dict[str, str]:
    return value_of(store, key, dict) or {}


def _mset(store: Store, args: Arguments) -> Any:
    _set_all(store, "mset", args)
    return OK


def _msetnx(store: Store, args: Arguments) -> Any:
    if len(args) % 2 == 0 and any(store.look(key) is not None for key in args[::2]):
        return 0
    _set_all(store, "msetnx", args)
    return 1


def _set_all(store: Store, name: str, args: Arguments) -> None:
    if len(args) % 2:
        raise CommandError(f"ERR wrong number of arguments for '{name}' command")
    for key, value in zip(args[::2], args[1::2], strict=True):
        store.put(key, value)
        store.signal("$", "set", key)


def _sadd(store: Store, args: Arguments) -> Any:
    key, *names = args
    found = made(store, key, MemberSet)
    before = len(found)
    found.update(dict.fromkeys(names))
    if len(found) > before:
        store.signal("s", "sadd", key)
    return len(found) - before


def _members(store: Store, key: str) -> MemberSet:
    return value_of(store, key, MemberSet) or MemberSet()


KEYS: dict[str, tuple[Command, int, int | None]] = {
    "KEYS": (_keys, 1, 1),
    "DBSIZE": (lambda store, args: len(store.values), 0, 0),
    "FLUSHALL": (_flush, 0, None),
    "FLUSHDB": (_flush, 0, None),
    "SCAN": (_scan, 1, None),
    "HSCAN": (_scan_in(dict, lambda found: found), 2, None),
    "SSCAN": (_scan_in(MemberSet, lambda found: dict.fromkeys(found)), 2, None),
    "ZSCAN": (
        _scan_in(
            Scores, lambda found: {name: str(double(found[name])) for name in found.ordered()}
        ),
        2,
        None,
    ),
    "HGETALL": (lambda store, args: dict(_fields(store, args[0])), 1, 1),
    "HKEYS": (lambda store, args: [*_fields(store, args[0])], 1, 1),
    "HVALS": (lambda store, args: [*_fields(store, args[0]).values()], 1, 1),
    "MSET": (_mset, 2, None),
    "MSETNX": (_msetnx, 2, None),
    "SADD": (_sadd, 2, None),
    "SREM": (lambda store, args: remove(store, args, MemberSet, "srem"), 2, None),
    "SISMEMBER": (lambda store, args: int(args[1] in _members(store, args[0])), 2, 2),
    "SCARD": (lambda store, args: len(_members(store, args[0])), 1, 1),
    "SMEMBERS": (lambda store, args: Members(_members(store, args[0])), 1, 1),
}
"""The commands, with their minimum and maximum numbers of arguments (commands.py)."""
READS_KEYS = frozenset({
    "KEYS", "DBSIZE", "SCAN", "HSCAN", "SSCAN", "ZSCAN", "HGETALL", "HKEYS", "HVALS", "SISMEMBER",
    "SCARD", "SMEMBERS",
})  # fmt: skip
