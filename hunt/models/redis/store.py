"""The keys of one Redis database: values, and when they expire by the server's wall clock.

Values are what Redis' types are made of: str, dict (a hash), Scores (a sorted set), list. A key
that has expired is there until somebody looks at it, or until Redis' own cycle comes by, which
shows where the clock goes back: so both are modelled (`look`, and RedisServer.settle).
"""

from __future__ import annotations

from typing import Any


class Scores(dict[str, float]):
    """A sorted set: members with their scores."""

    def ordered(self) -> list[str]:
        return [member for _, member in sorted((score, name) for name, score in self.items())]


Value = str | dict[str, str] | Scores | list[str]


class Store:
    """`now_ms` is the wall clock, as of the command that is being carried out. `full`: memory is at
    its limit, and nothing may be evicted. `lists_made`: lists that were made since somebody last
    looked, in order: who waits for one is served then."""

    __slots__ = ("expires", "full", "keeps", "lists_made", "now_ms", "values")

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.expires: dict[str, int] = {}
        self.now_ms = 0
        self.full = False
        # A replica deletes nothing by itself: its primary tells it to.
        self.keeps = False
        self.lists_made: dict[str, None] = {}

    def look(self, key: str) -> Value | None:
        """The value of a key; None if there is none, or none any more."""
        value = self.values.get(key)
        if value is not None and self.expires:
            when = self.expires.get(key)
            # Redis: a key has expired once its time is past, not when it has come (db.c,
            # keyIsExpired).
            if when is not None and self.now_ms > when:
                if not self.keeps:
                    self.delete(key)
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
        """Delete what has expired by then, as Redis' own cycle does; return the keys."""
        if self.keeps or not self.expires:
            return []
        gone = [key for key, when in self.expires.items() if wall_ms > when]
        for key in gone:
            self.delete(key)
        return gone

    def copy(self) -> Store:
        made = Store()
        made.values = {key: _copied(value) for key, value in self.values.items()}
        made.expires = dict(self.expires)
        return made

    def dump(self) -> dict[str, Any]:
        """What is in it, for comparison."""
        return {key: (value, self.expires.get(key)) for key, value in self.values.items()}


def _copied(value: Value) -> Value:
    return value if isinstance(value, str) else type(value)(value)  # type: ignore[arg-type]
