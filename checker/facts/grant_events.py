"""The events of each grant: its acquire, and whatever gave it another deadline or an end.

One pass over the ops of clients. An op names its hold. In a history whose holds have no names
(Jepsen's) it refers to the latest grant of its own process and lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.checker.facts.ends import FOREVER, End
from fencepost.checker.history.history import SPONTANEOUS, Call, History, Op

NOT_HELD = "not-held"
"""The error kind of an extend or release that was refused because the hold had ended."""
UNREACHABLE = "unreachable"
"""The error kind of a request that no server received."""


class GrantEvents:
    """`grants`: the acquires answered ok. By a grant's position in the history: `longer` has the
    events that may have changed its deadline, in order (extends that did not fail, with their
    invocations, and renewals); `ends` has the ends that its holder reported.

    keeps_on: a hold continues after a release that failed, unless it was refused because the hold
    had ended. A release that reached no server has a hold end, at the latest, never; so has an
    extend that was refused because the hold had ended. Neither counts if its holder does more with
    the hold.

    `asked_again`: when a process whose release reached no server first asked for the lock again.
    A library may give its old hold back with that request.
    """

    def __init__(self, history: History, keeps_on: bool) -> None:
        self.grants: list[Call] = []
        self.longer: dict[int, list[Op]] = {}
        self.ends: dict[int, list[End]] = {}
        self.asked_again: dict[int, int] = {}
        self._named: dict[Any, int] = {}
        self._nameless: dict[tuple[int | str, str], int] = {}
        self._calls: dict[int, Call] = {}  # of grants, by their answers, and of extends
        self._idle: set[int] = set()  # releases that ended nothing
        self._unsent: set[int] = set()  # releases that reached no server
        # Grants of a process and lock with such a release, since when it has not asked again.
        self._kept: dict[tuple[int | str, str], list[int]] = {}
        self._tried: dict[int, End] = {}  # of a grant, the last of these, or a refused extend
        self._early: dict[tuple[int | str, Any], Op] | None = None
        self._look_at(history.calls(), keeps_on)
        self._take(history.clients())

    def _look_at(self, calls: list[Call], keeps_on: bool) -> None:
        for call in calls:
            f, end = call.begin.f, call.end
            if f == "extend":
                self._calls[call.begin.index] = call
            elif f == "release" and call.type == "fail" and not refused(call):
                if keeps_on:
                    self._idle.add(call.begin.index)
                if unsent(call):
                    self._unsent.add(call.begin.index)
            if end is not None and (f == "extend" or (f == "acquire" and end.type == "ok")):
                self._calls[end.index] = call

    def _take(self, ops: list[Op]) -> None:
        done: set[int] = set()  # grants that came late
        for op in ops:
            f = op.f
            if f == "acquire":
                if op.type == "ok" and op.index not in done:
                    self._granted(op)
                elif op.type == "invoke":
                    for kept in self._kept.pop((op.process, lock_of(op.value)), ()):
                        self.asked_again.setdefault(kept, op.time)
            elif f == "release":
                self._used(op)
                if op.index in self._unsent:
                    self._keeps(op)
                if op.type == "invoke" and op.index not in self._idle:
                    self._end(op, "release")
            elif f == "extend":
                self._used(op)
                update = self._calls.get(op.index)
                if update is not None and update.type != "fail":
                    self._longer(op)
                elif update is not None and op is update.end and refused(update):
                    self._end(op, "refused")
            elif f in SPONTANEOUS:
                grant = self._later_grant(op, ops)
                if grant is not None and grant.index not in done:
                    done.add(grant.index)
                    self._granted(grant)
                if f == "renewed":
                    self._longer(op)
                elif op.value.get("hold") is not None:
                    self._end(op, "lost")
            elif f == "write":
                self._used(op)

    def certain(self, grant: int) -> list[Op]:
        """Yield the events that certainly changed this grant's deadline."""
        return [op for op in self.longer.get(grant, ()) if op.f == "renewed" or op.type == "ok"]

    def _granted(self, op: Op) -> None:
        call = self._calls.get(op.index)
        if call is None:
            return
        self.grants.append(call)
        hold = call.get("hold")
        if hold is not None:
            self._named[op.process, hold] = op.index
        else:
            self._nameless[op.process, lock_of(call.value)] = op.index

    def _later_grant(self, op: Op, ops: list[Op]) -> Op | None:
        """Return the grant that a library's own thread names before the answer is recorded."""
        about = op.process, op.value.get("hold")
        if about[1] is None or about in self._named:
            return None
        if self._early is None:
            self._early = _grants_by_name(ops)
        grant = self._early.get(about)
        return grant if grant is not None and op.index < grant.index else None

    def _end(self, op: Op, by: str) -> None:
        grant = self._grant(op)
        if grant is None:
            return
        end = End(op.time, op.time, by)
        if by == "refused" or op.index in self._unsent:
            end = self._tried[grant] = End(op.time, FOREVER, by)
        self.ends.setdefault(grant, []).append(end)

    def _keeps(self, op: Op) -> None:
        grant = self._grant(op)
        if grant is not None:
            lock = lock_of(self._calls[grant].value)
            self._kept.setdefault((op.process, lock), []).append(grant)

    def _used(self, op: Op) -> None:
        """Take back that the holder gave its hold up after a release that reached no server, or a
        refused extend, because it uses the hold again."""
        if self._tried and op.type == "invoke":
            grant = self._grant(op)
            if grant in self._tried:
                self.ends[grant].remove(self._tried.pop(grant))

    def _longer(self, op: Op) -> None:
        grant = self._grant(op)
        if grant is not None:
            self.longer.setdefault(grant, []).append(op)

    def _grant(self, op: Op) -> int | None:
        """Return the grant that an op of its own process refers to: by name, else the latest."""
        hold = op.value.get("hold")
        if hold is not None:
            return self._named.get((op.process, hold))
        return self._nameless.get((op.process, lock_of(op.value)))


def refused(call: Call) -> bool:
    """Return whether an extend or release was refused because its hold had ended."""
    return _failed_as(NOT_HELD, call)


def unsent(call: Call) -> bool:
    """Return whether a call failed because no server received it: it changed nothing."""
    return _failed_as(UNREACHABLE, call)


def _failed_as(kind: str, call: Call) -> bool:
    end = call.end
    if end is None or end.type != "fail" or not end.error:
        return False
    return bool(end.error[0] == kind)


def lock_of(value: Mapping[str, Any]) -> str:
    """Return the lock of an op, or '' if it names none."""
    return str(value.get("lock", ""))


def _grants_by_name(ops: Iterable[Op]) -> dict[tuple[int | str, Any], Op]:
    """Return the first grant of each process and hold."""
    found: dict[tuple[int | str, Any], Op] = {}
    for op in ops:
        if op.f == "acquire" and op.type == "ok" and op.value.get("hold") is not None:
            found.setdefault((op.process, op.value["hold"]), op)
    return found
