"""Redis' commands that take the members with the lowest or highest scores from a sorted set.

Here BZPOPMIN and BZPOPMAX never block; the server lets the client wait (waiting.py).
"""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.redis.arguments import (
    SYNTAX,
    Arguments,
    Command,
    CommandError,
    emptied,
    integer,
    value_of,
)
from fencepost.hunt.models.redis.lists import timeout_ms
from fencepost.hunt.models.redis.replies import Scored, double
from fencepost.hunt.models.redis.store import Scores, Store


def _taken(store: Store, key: str, lowest: bool, count: int) -> list[Any]:
    """Take some members of a sorted set; return them and their scores in turn."""
    found = value_of(store, key, Scores)
    if found is None:
        return []
    names = found.ordered() if lowest else found.ordered()[::-1]
    taken = [part for name in names[:count] for part in (name, double(found[name]))]
    for name in names[:count]:
        del found[name]
    if taken:
        store.signal("z", "zpopmin" if lowest else "zpopmax", key)
    if not found:
        emptied(store, key)
    return taken


def scored_one(store: Store, key: str, lowest: bool) -> list[Any] | None:
    """Take one member; return the key, the member and its score."""
    taken = _taken(store, key, lowest, 1)
    return [key, *taken] if taken else None


def _pop(lowest: bool) -> Command:
    def pop(store: Store, args: Arguments) -> Any:
        key, *more = args
        if len(more) > 1:
            raise CommandError(SYNTAX)
        if not more:
            return _taken(store, key, lowest, 1)
        try:
            count = integer(more[0])
        except CommandError:
            count = -1
        if count < 0:
            raise CommandError("ERR value is out of range, must be positive")
        if value_of(store, key, Scores) is None or not count:
            return []
        return Scored(_taken(store, key, lowest, count))

    return pop


def _pop_at_once(lowest: bool) -> Command:
    def pop(store: Store, args: Arguments) -> Any:
        *keys, timeout = args
        timeout_ms(timeout)
        for key in keys:
            found = scored_one(store, key, lowest)
            if found is not None:
                return found
        return None

    return pop


SCORED_POPS: dict[str, tuple[Command, int, int | None]] = {
    "ZPOPMIN": (_pop(True), 1, None),
    "ZPOPMAX": (_pop(False), 1, None),
    "BZPOPMIN": (_pop_at_once(True), 2, None),
    "BZPOPMAX": (_pop_at_once(False), 2, None),
}
