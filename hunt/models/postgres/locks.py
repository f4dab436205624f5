"""The server's lock table: advisory locks, tables, rows and transactions, in PostgreSQL's eight
modes (lock.c, proc.c).

A request that conflicts with a granted lock, or with a request that waits, waits in its queue. One
of a session that already holds a conflicting lock goes before those that wait for that lock. A
waiter that closes a circle fails after `deadlock_timeout`.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterator
from typing import Any, Protocol

from fencepost.hunt.models.postgres.errors import PgError

ACCESS_SHARE, ROW_SHARE, ROW_EXCLUSIVE, SHARE, EXCLUSIVE = 1, 2, 3, 5, 7
_CONFLICTS = {
    1: {8}, 2: {7, 8}, 3: {5, 6, 7, 8}, 4: {4, 5, 6, 7, 8}, 5: {3, 4, 6, 7, 8},
    6: {3, 4, 5, 6, 7, 8}, 7: {2, 3, 4, 5, 6, 7, 8}, 8: {1, 2, 3, 4, 5, 6, 7, 8},
}  # fmt: skip
Tag = tuple[Hashable, ...]
Waits = Generator["Waiter", None, Any]
"""The execution of a statement: it yields the requests for which it waits, and returns its
result."""


class Owner(Protocol):
    """A session, which holds locks. `waiter`: its request that waits, or None."""

    waiter: Any


class Waiter:
    """A request that waits. `jumps`: it ignores those before it, to break a circle."""

    __slots__ = ("granted", "jumps", "mode", "owner", "tag")

    def __init__(self, owner: Owner | None, tag: Tag, mode: int) -> None:
        self.owner = owner
        self.tag = tag
        self.mode = mode
        self.granted = False
        self.jumps = False


class _Lock:
    __slots__ = ("held", "queue")

    def __init__(self) -> None:
        self.held: dict[Any, dict[int, int]] = {}
        self.queue: list[Waiter] = []


class Locks:
    """The lock table. `wake` is called with each waiter that has been granted its request."""

    def __init__(self) -> None:
        self._locks: dict[Tag, _Lock] = {}
        self.granted: list[Waiter] = []

    def held(self, owner: Any, tag: Tag, mode: int) -> bool:
        lock = self._locks.get(tag)
        return lock is not None and mode in lock.held.get(owner, ())

    def any_of(self, owner: Any) -> bool:
        """Whether this session holds any lock."""
        return any(owner in lock.held for lock in self._locks.values())

    def acquire(self, owner: Any, tag: Tag, mode: int) -> Waits:
        """Take a lock, and wait for it if necessary."""
        if self.at_once(owner, tag, mode):
            return
        lock = self._locks[tag]
        waiter = Waiter(owner, tag, mode)
        place = self._place(lock, waiter)
        lock.queue.insert(place, waiter)
        if place < len(lock.queue) - 1 and self._ready(lock, waiter):
            lock.queue.remove(waiter)
            self._grant(lock, waiter)
            return
        yield waiter

    def at_once(self, owner: Any, tag: Tag, mode: int) -> bool:
        """Take a lock if it is free; return whether it was taken."""
        lock = self._locks.get(tag)
        if lock is None:
            lock = self._locks[tag] = _Lock()
        mine = lock.held.get(owner)
        if mine is None or mode not in mine:
            waiting = any(one.mode in _CONFLICTS[mode] for one in lock.queue)
            if waiting or any(self._holders(lock, owner, mode)):
                return False
        self._grant(lock, Waiter(owner, tag, mode))
        return True

    def _grant(self, lock: _Lock, waiter: Waiter) -> None:
        modes = lock.held.setdefault(waiter.owner, {})
        modes[waiter.mode] = modes.get(waiter.mode, 0) + 1
        waiter.granted = True

    def _holders(self, lock: _Lock, owner: Any, mode: int) -> Iterator[Any]:
        for holder, modes in lock.held.items():
            if holder is not owner and not _CONFLICTS[mode].isdisjoint(modes):
                yield holder

    def _place(self, lock: _Lock, waiter: Waiter) -> int:
        mine = set(lock.held.get(waiter.owner, ()))
        for place, other in enumerate(lock.queue):
            if _CONFLICTS[other.mode] & mine:
                if other.owner in list(self._holders(lock, waiter.owner, waiter.mode)):
                    raise PgError("40P01", "deadlock detected")
                return place
        return len(lock.queue)

    def _before(self, lock: _Lock, waiter: Waiter) -> Iterator[Any]:
        if not waiter.jumps:
            for other in lock.queue[: lock.queue.index(waiter)]:
                if other.mode in _CONFLICTS[waiter.mode]:
                    yield other.owner

    def _ready(self, lock: _Lock, waiter: Waiter) -> bool:
        found = any(self._holders(lock, waiter.owner, waiter.mode))
        return not found and not any(self._before(lock, waiter))

    def release(self, owner: Any, tag: Tag, mode: int, count: int = 1) -> None:
        """Return a lock, as often as `count`; grant what becomes possible."""
        lock = self._locks[tag]
        modes = lock.held[owner]
        modes[mode] -= count
        if not modes[mode]:
            del modes[mode]
        if not modes:
            del lock.held[owner]
        self._proceed(tag, lock)

    def leave(self, waiter: Waiter) -> None:
        """Withdraw a request that waits."""
        lock = self._locks.get(waiter.tag)
        if lock is not None and waiter in lock.queue:
            lock.queue.remove(waiter)
            self._proceed(waiter.tag, lock)

    def _proceed(self, tag: Tag, lock: _Lock) -> None:
        for waiter in list(lock.queue):
            if self._ready(lock, waiter):
                lock.queue.remove(waiter)
                self._grant(lock, waiter)
                self.granted.append(waiter)
        if not lock.queue and not lock.held:
            self._locks.pop(tag, None)

    # Circles.

    def deadlocked(self, waiter: Waiter) -> bool:
        """Whether a waiter waits for itself. A circle over the order of a queue alone is broken by
        another order."""
        if self._circle(waiter, waiter.owner, set(), hard=True):
            return True
        if self._circle(waiter, waiter.owner, set(), hard=False):
            waiter.jumps = True
            self._proceed(waiter.tag, self._locks[waiter.tag])
        return False

    def _circle(self, waiter: Waiter, start: Any, seen: set[int], hard: bool) -> bool:
        lock = self._locks.get(waiter.tag)
        if lock is None:  # it sleeps
            return False
        blockers = list(self._holders(lock, waiter.owner, waiter.mode))
        if not hard:
            blockers += self._before(lock, waiter)
        for one in blockers:
            if one is start:
                return True
            if id(one) not in seen and one.waiter is not None:
                seen.add(id(one))
                if self._circle(one.waiter, start, seen, hard):
                    return True
        return False

    def clear(self) -> None:
        self._locks.clear()
        self.granted.clear()
