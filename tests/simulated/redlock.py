"""A lock library on a quorum of servers, in the manner of Redlock (workloads/locks/redlock.py).

It asks all servers at once. The lock is granted if a majority says yes while the lease still runs,
counted from before the first request, with an allowance for clocks that run at different rates.
Otherwise it gives the servers their grants back, and tries again under another name.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from tests.simulated.library import Grant, Host
from tests.simulated.line import Refused, Unknown
from tests.simulated.state import Owner
from tests.simulated.world import MS, Steps

_GRAIN = 2 * MS
"""The allowance for the resolution of the servers' clocks."""


class QuorumLock:
    def __init__(self, host: Host, name: str) -> None:
        self._host = host
        self._name = name
        self._count = count(1)
        self._servers = host.cluster.names

    def acquire(self, lock: str, ttl: int, shared: bool) -> Steps:
        host = self._host
        until = host.world.now + host.plan.wait
        owner = self._owner()
        while True:
            if host.defect.name != "retries_own_key":
                owner = self._owner()
            sent = host.stamp()
            answers = yield from self._ask(host.quorum.take, lock, owner, ttl)
            yes = tuple(sorted(server for server, answer in answers.items() if answer))
            grant = None
            if self._suffices(len(yes)):
                yield from host.reach("granted")
                grant = self._granted(lock, owner, sent, ttl, yes)
            last = host.world.now >= until
            if grant is not None:
                return grant
            if self._gives_back(bool(yes), last):
                yield from self._ask(host.quorum.drop, lock, owner)
            if last:
                silent = len(answers) < host.quorum.majority
                raise Refused("no-quorum" if silent else "not-granted", f"granted by {len(yes)}")
            yield host.world.now + host.world.between(40, 200)

    def _owner(self) -> Owner:
        return self._name, next(self._count)

    def _suffices(self, yes: int) -> bool:
        """Return whether these are a majority; a defect takes one less for it."""
        missing = self._host.quorum.majority - yes
        strikes = self._host.defect.strikes
        less = missing == 1 and yes > 0 and (strikes("minority") or strikes("counts_twice"))
        return missing <= 0 or less

    def _granted(
        self, lock: str, owner: Owner, sent: int, ttl: int, yes: tuple[str, ...]
    ) -> Grant | None:
        """Return the grant; None if its lease has expired by now."""
        host = self._host
        if host.defect.strikes("deadline_from_answer"):
            sent = host.stamp()
        deadline = self._deadline(sent, ttl)
        if host.stamp() >= deadline and not host.defect.strikes("no_validity"):
            return None
        host.service.order.setdefault(owner, len(host.service.order) + 1)
        return Grant(lock, owner, None, deadline, granted_by=yes)

    def _deadline(self, sent: int, ttl: int) -> int:
        if self._host.defect.strikes("no_drift"):
            return sent + ttl
        return sent + ttl - int(ttl * self._host.plan.drift) - _GRAIN

    def _gives_back(self, some: bool, last: bool) -> bool:
        if self._host.defect.name == "retries_own_key":
            return last
        return not (some and self._host.defect.strikes("keeps_minority"))

    def extend(self, grant: Grant, ttl: int) -> Steps:
        host = self._host
        sent = host.stamp()
        answers = yield from self._ask(host.quorum.extend, grant.lock, grant.owner, ttl)
        self._must("extended", answers, Refused)
        deadline = self._deadline(sent, ttl)
        if host.stamp() >= deadline:
            raise Refused("no-quorum", "extended too late")
        grant.deadline = deadline

    def release(self, grant: Grant) -> Steps:
        answers = yield from self._ask(self._host.quorum.drop, grant.lock, grant.owner)
        if not self._host.plan.polite:
            self._must("released", answers, Unknown)

    def _must(self, done: str, answers: dict[str, Any], unsure: type[Refused]) -> None:
        """Raise an error without a majority. `unsure` is raised if the silent servers could have
        made it."""
        yes, silent = sum(answers.values()), len(self._servers) - len(answers)
        if yes < self._host.quorum.majority:
            if yes + silent >= self._host.quorum.majority:
                raise unsure("no-quorum", f"{done} by {yes}, {silent} did not answer")
            raise Refused("not-held", f"{done} by {yes}")

    def stop(self) -> None:
        """It renews nothing in the background."""

    def close(self) -> Steps:
        yield self._host.world.now + self._host.world.between(0, 1)

    def _ask(self, act: Callable[..., Any], *given: Any) -> Steps:
        host = self._host
        yield from host.reach("before-request")
        until = host.world.now + host.plan.timeout
        answers = yield from host.line.ask_all(self._servers, until, act, *given)
        yield from host.reach("replies-in-flight")
        return answers
