"""The keys that connections to a Redis server watch (WATCH), and whether they were touched.

A key that has expired is touched as well. One that had expired before it was watched, and is
deleted then, is not (multi.c of Redis 7.0).
"""

from __future__ import annotations

from collections.abc import Callable


class Watched:
    """The watched keys of each connection, with whether they had expired by then; None: one was
    touched."""

    def __init__(self) -> None:
        self._by_session: dict[object, dict[str, bool] | None] = {}

    def __bool__(self) -> bool:
        return any(self._by_session.values())

    def add(self, who: object, key: str, expired: bool) -> None:
        mine = self._by_session.setdefault(who, {})
        if mine is not None:
            mine.setdefault(key, expired)

    def leave(self, who: object) -> None:
        self._by_session.pop(who, None)

    def touch(self, key: str, exists: bool) -> None:
        """Note that a key was changed or deleted; `exists`: it has a value now."""
        for who, mine in self._by_session.items():
            if mine is not None and key in mine:
                if mine[key] and not exists:
                    mine[key] = False
                else:
                    self._by_session[who] = None

    def touched(self, who: object, expired: Callable[[str], bool]) -> bool:
        """Return whether a key of this connection was touched, or has expired."""
        mine = self._by_session.get(who, {})
        return mine is None or any(not before and expired(key) for key, before in mine.items())
