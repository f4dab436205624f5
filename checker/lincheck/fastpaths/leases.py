"""Tries one order of the ops of a lock with leases, in which each is placed as late as possible.

Nearly every history of a correct lock fits that order, which is found in one pass. An op is placed
when it returns. For a grant, the hold before ends first, once it was extended by all open extends
of it: by an open release, else by the end of its lease, if that is due. Open grants with a lower
token go first. Ops that never returned, except releases, have not happened.

The model allows each step, at a time at which the op was open, so an order that is found is a
linearization. If none is found, the answer is None.
"""

from __future__ import annotations

from collections.abc import Hashable
from operator import attrgetter
from typing import TypeVar

from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.models.lock import FREE
from fencepost.checker.lincheck.operation import Operation

T = TypeVar("T")


def latest_order(operations: list[Operation], model: Model) -> bool | None:
    """Return True if the order that the module describes is a linearization, else None."""
    invoked = sorted(operations, key=attrgetter("id"))
    returning = [operation for operation in operations if operation.returned is not None]
    returning.sort(key=attrgetter("returned"))
    lock = _Lock(model.initial.token)
    place, many = 0, len(invoked)
    for operation in returning:
        returned = operation.returned
        assert returned is not None
        while place < many and invoked[place].id < returned:
            lock.invoked(invoked[place])
            place += 1
        if not lock.returned(operation):
            return None
    return True


class _Lock:
    """The state after the ops placed so far, as in models/lease.py, and the ops that may be placed
    before they return."""

    def __init__(self, token: int | None) -> None:
        self._holder: Hashable = FREE
        self._until: int | None = None
        self._token = token
        self._expired: set[Hashable] = set()
        self._now: int | None = None
        self._placed: set[int] = set()  # that have not returned yet
        self._releases: dict[Hashable, list[int]] = {}  # open, by grant
        self._extends: dict[Hashable, list[Operation]] = {}  # open, by grant
        self._grants: dict[int, tuple[int, Operation]] = {}  # open, with their tokens

    def invoked(self, operation: Operation) -> None:
        self._pass(operation.time)
        f, _, result, grant = operation.action
        if f in ("release", "ended"):
            self._releases.setdefault(grant, []).append(operation.id)
        elif operation.returned is None:
            return
        elif f == "extend":
            self._extends.setdefault(grant, []).append(operation)
        elif type(result) is int:
            self._grants[operation.id] = result, operation

    def returned(self, operation: Operation) -> bool:
        """Place it unless it is placed already; return False if it does not fit."""
        self._pass(operation.ended)
        f, until, result, grant = operation.action
        if operation.id in self._placed:
            self._placed.discard(operation.id)
            return True
        if f == "acquire":
            return self._acquired(operation, result if type(result) is int else None)
        if f == "extend":
            _remove(self._extends, grant, operation)
            self._until = until
            return self._holder == grant
        _remove(self._releases, grant, operation.id)
        if self._holder == grant:
            self._holder = FREE
        elif grant in self._expired:
            self._expired.discard(grant)
        else:
            return f == "ended"
        return True

    def _pass(self, now: int | None) -> None:
        if now is not None and (self._now is None or now > self._now):
            self._now = now

    def _acquired(self, operation: Operation, token: int | None) -> bool:
        if token is not None:
            del self._grants[operation.id]
            if self._grants and not self._lower(token):
                return False
        return self._grant(operation, token)

    def _lower(self, token: int) -> bool:
        """Place the open grants with a lower token."""
        lower = sorted((other, id) for id, (other, _) in self._grants.items() if other < token)
        for other, id in lower:
            _, operation = self._grants.pop(id)
            self._placed.add(id)
            if not self._grant(operation, other):
                return False
        return True

    def _grant(self, operation: Operation, token: int | None) -> bool:
        if not self._freed():
            return False
        if token is not None:
            if self._token is not None and token <= self._token:
                return False
            self._token = token
        _, self._until, _, self._holder = operation.action
        return True

    def _freed(self) -> bool:
        """End the current hold, if any; return False if nothing may have ended it."""
        holder = self._holder
        if holder is FREE:
            return True
        for extend in self._extends.pop(holder, ()):
            self._placed.add(extend.id)
            _, self._until, _, _ = extend.action
        self._holder = FREE
        if holder in self._releases:
            release = self._releases[holder][0]
            self._placed.add(release)
            _remove(self._releases, holder, release)
            return True
        if self._until is None or self._now is None or self._until > self._now:
            return False
        self._expired.add(holder)
        return True


def _remove(going: dict[Hashable, list[T]], grant: Hashable, what: T) -> None:
    """Forget a release or extend that is no longer open."""
    going[grant].remove(what)
    if not going[grant]:
        del going[grant]
