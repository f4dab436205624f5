"""Redis' list commands.

Here BLPOP and BRPOP never block: they take an element, or return None. The server lets the client
wait (waiting.py).
"""

from __future__ import annotations

import math
import re
from typing import Any

from fencepost.hunt.models.redis.arguments import (
    LARGEST,
    Arguments,
    Command,
    CommandError,
    between,
    emptied,
    integer,
    made,
    value_of,
)
from fencepost.hunt.models.redis.replies import OK
from fencepost.hunt.models.redis.store import Store

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\Z|[-+]?inf\Z", re.IGNORECASE | re.ASCII)
_POSITIVE = "ERR value is out of range, must be positive"


def _push(left: bool, exists: bool = False) -> Command:
    """Return a command that pushes; `exists`: only to a list that exists."""

    def push(store: Store, args: Arguments) -> Any:
        key, *values = args
        if exists and value_of(store, key, list) is None:
            return 0
        return push_all(store, key, values, left)

    return push


def push_all(store: Store, key: str, values: list[str], left: bool) -> int:
    """Push values one by one; return the length of the list."""
    if value_of(store, key, list) is None:
        store.lists_made[key] = None
    found: list[str] = made(store, key, list)
    if left:
        found[:0] = reversed(values)
    else:
        found += values
    store.signal("l", "lpush" if left else "rpush", key)
    return len(found)


def _pop(left: bool) -> Command:
    def pop(store: Store, args: Arguments) -> Any:
        key, *more = args
        if len(more) > 1:
            name = "lpop" if left else "rpop"
            raise CommandError(f"ERR wrong number of arguments for '{name}' command")
        if not more:
            return pop_one(store, key, left)
        try:
            count = integer(more[0])
        except CommandError:
            raise CommandError(_POSITIVE) from None
        if count < 0:
            raise CommandError(_POSITIVE)
        found = value_of(store, key, list)
        if found is None:
            return None
        return _pop_many(store, key, left, min(count, len(found)))

    return pop


def pop_one(store: Store, key: str, left: bool) -> str | None:
    """Take the first or last element of a list; an empty list is deleted."""
    found = value_of(store, key, list)
    if found is None:
        return None
    value: str = found.pop(0 if left else -1)
    store.signal("l", "lpop" if left else "rpop", key)
    if not found:
        emptied(store, key)
    return value


def _pop_many(store: Store, key: str, left: bool, count: int) -> list[str]:
    """Take some elements of a list that has as many."""
    found = store.values[key]
    assert isinstance(found, list)
    values = [found.pop(0 if left else -1) for _ in range(count)]
    if values:
        store.signal("l", "lpop" if left else "rpop", key)
    if not found:
        emptied(store, key)
    return values


def _pop_at_once(left: bool) -> Command:
    def pop(store: Store, args: Arguments) -> Any:
        *keys, timeout = args
        timeout_ms(timeout)
        for key in keys:
            value = pop_one(store, key, left)
            if value is not None:
                return [key, value]
        return None

    return pop


def timeout_ms(text: str) -> int:
    """Return the timeout of a blocking command; 0: none.

    Redis computes in milliseconds and rounds up; a value that overflows becomes negative.
    """
    if not _NUMBER.match(text):
        raise CommandError("ERR timeout is not a float or out of range")
    ms = float(text) * 1000
    if not 0 <= ms < LARGEST:
        raise CommandError("ERR timeout is negative")
    return math.ceil(ms)


def _range(store: Store, args: Arguments) -> Any:
    first, last = integer(args[1]), integer(args[2])
    return between(value_of(store, args[0], list) or [], first, last)


def _trim(store: Store, args: Arguments) -> Any:
    key, first, last = args[0], integer(args[1]), integer(args[2])
    found = value_of(store, key, list)
    if found is not None:
        found[:] = between(found, first, last)
        store.signal("l", "ltrim", key)
        if not found:
            emptied(store, key)
    return OK


def _index(store: Store, args: Arguments) -> Any:
    found = value_of(store, args[0], list)
    if found is None:
        return None
    place = integer(args[1])
    return found[place] if -len(found) <= place < len(found) else None


def _set(store: Store, args: Arguments) -> Any:
    key, index, value = args
    found = value_of(store, key, list)
    if found is None:
        raise CommandError("ERR no such key")
    place = integer(index)
    if not -len(found) <= place < len(found):
        raise CommandError("ERR index out of range")
    found[place] = value
    store.signal("l", "lset", key)
    return OK


def _remove(store: Store, args: Arguments) -> Any:
    """Remove elements with a value: the first ones, the last ones if the count is negative, or
    all."""
    key, many, value = args
    count = integer(many)
    if count == -LARGEST - 1:
        raise CommandError(
            f"ERR value is out of range, value must between {-LARGEST} and {LARGEST}"
        )
    found = value_of(store, key, list)
    if found is None:
        return 0
    places = [place for place, one in enumerate(found) if one == value]
    gone = places[count:] if count < 0 else places[: count or None]
    for place in reversed(gone):
        del found[place]
    if gone:
        store.signal("l", "lrem", key)
    if not found:
        emptied(store, key)
    return len(gone)


LISTS: dict[str, tuple[Command, int, int | None]] = {
    "LPUSH": (_push(True), 2, None),
    "RPUSH": (_push(False), 2, None),
    "LPUSHX": (_push(True, exists=True), 2, None),
    "RPUSHX": (_push(False, exists=True), 2, None),
    "LINDEX": (_index, 2, 2),
    "LSET": (_set, 3, 3),
    "LREM": (_remove, 3, 3),
    "LPOP": (_pop(True), 1, None),
    "RPOP": (_pop(False), 1, None),
    "LLEN": (lambda store, args: len(value_of(store, args[0], list) or ()), 1, 1),
    "LRANGE": (_range, 3, 3),
    "LTRIM": (_trim, 3, 3),
    "BLPOP": (_pop_at_once(True), 2, None),
    "BRPOP": (_pop_at_once(False), 2, None),
}
"""The list commands, with their minimum and maximum numbers of arguments (commands.py)."""
POPS = frozenset({"BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX"})
BLOCKS = POPS | {"BLMOVE", "BRPOPLPUSH"}
"""Commands that block if there is nothing to take."""
