"""The keys of one Redis database: their values, and when they expire by the server's wall clock.

Values are those of Redis' types: str, dict (a hash), Scores (a sorted set), MemberSet, list,
Stream. An expired key
remains until a command accesses it or Redis' expiry cycle deletes it. That is visible if the clock
moves back, so both are modelled (`look`, and RedisServer.settle).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencepost.hunt.models.redis.stream_value import Stream


class Scores(dict[str, float]):
    """A sorted set: members with their scores."""

    def ordered(self) -> list[str]:
        """Return the members by score, and those with equal scores by their bytes."""
        pairs = sorted(
            (score, name.encode("utf-8", "surrogateescape"), name) for name, score in self.items()
        )
        return [name for _, _, name in pairs]


class MemberSet(dict[str, None]):
    """A set, in the order of insertion."""


Value = str | MemberSet | dict[str, str] | Scores | list[str] | Stream


class Store:
    """The database.

    `now_ms`: the wall clock at the current command. `full`: memory is at its limit, and eviction is
    not allowed. `lists_made`: lists and sorted sets that were created since the last check of
    waiting clients, in order. `listener`: is called for each change of a key, with the kind of
    event, its name, the key (notices.py), and whether clients that watch the key are touched.
    """

    __slots__ = ("expires", "full", "keeps", "listener", "lists_made", "now_ms", "values")

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.expires: dict[str, int] = {}
        self.now_ms = 0
        self.full = False
        # A replica deletes no expired key by itself; its primary sends the deletion.
        self.keeps = False
        self.lists_made: dict[str, None] = {}
        self.listener: Callable[[str, str, str, bool], None] | None = None

    def signal(self, kind: str, event: str, key: str) -> None:
        """Note that a key has changed."""
        if self.listener is not None:
            self.listener(kind, event, key, True)

    def tell(self, kind: str, event: str, key: str) -> None:
        """Note an event of a key that touches no watched key."""
        if self.listener is not None:
            self.listener(kind, event, key, False)

    def look(self, key: str) -> Value | None:
        """Return the value of a key; None if it does not exist or has expired."""
        value = self.values.get(key)
        if value is not None and self.expires:
            when = self.expires.get(key)
            # In Redis a key expires after its time, not at it (db.c, keyIsExpired).
            if when is not None and self.now_ms > when:
                if not self.keeps:
                    self.delete(key)
                    self.signal("x", "expired", key)
                return None
        return value

    def put(self, key: str, value: Value, expires_ms: int | None = None) -> None:
        self.values[key] = value
        if expires_ms is not None:
            self.expires[key] = expires_ms
        elif key in self.expires:
            del self.expires[key]

    def delete(self, key: str) -> bool:
        self.expires.pop(key, None)
        return self.values.pop(key, None) is not None

    def sweep(self, wall_ms: int) -> list[str]:
        """Delete expired keys, as Redis' expiry cycle does; return them."""
        if self.keeps or not self.expires:
            return []
        gone = [key for key, when in self.expires.items() if wall_ms > when]
        for key in gone:
            self.delete(key)
            self.signal("x", "expired", key)
        return gone

    def copy(self) -> Store:
        made = Store()
        made.values = {key: _copied(value) for key, value in self.values.items()}
        made.expires = dict(self.expires)
        return made

    def dump(self) -> dict[str, Any]:
        """Return the contents, for comparison."""
        return {key: (value, self.expires.get(key)) for key, value in self.values.items()}


def _copied(value: Value) -> Value:
    return value if isinstance(value, str) else type(value)(value)  # type: ignore[arg-type]
