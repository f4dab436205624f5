"""A lock library in which each hold has a lease of its own, as with Redis.

A request is sent once, to one server; the next goes to another after a timeout. Its defects are
those that clients of such a lock have had.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from tests.simulated.library import Grant, Host, Keepalive
from tests.simulated.line import Refused, Unknown
from tests.simulated.state import Owner
from tests.simulated.world import Steps


class LeaseLock:
    def __init__(self, host: Host, name: str) -> None:
        self._host = host
        self._name = name
        self._count = count(1)
        self._server = host.world.random.randrange(len(host.cluster.names))
        self._dogs: dict[Owner, Keepalive] = {}
        self._held: dict[str, Grant] = {}

    def acquire(self, lock: str, ttl: int, shared: bool) -> Steps:
        host, plan = self._host, self._host.plan
        until = host.world.now + plan.wait
        mine = self._held.get(lock)
        if mine is not None and (yield from self._reenter(mine, ttl)):
            again = Grant(lock, self._owner(), mine.token, mine.deadline, outer=mine)
            host.service.order[again.owner] = host.service.order[mine.owner]
            return again
        owner = self._owner()
        early = None
        if host.defect.strikes("early_token"):
            early = yield from self._sure(host.service.draw, lock)
        while True:
            sent = host.stamp()
            answer = yield from self._ask(host.service.take, host.process, lock, owner, shared, ttl)
            if answer is None:
                answer = self._silent()
            if _yes(answer):
                yield from host.reach("granted")
                if host.defect.strikes("raises_though_granted"):
                    raise Unknown("raised")
                if host.defect.strikes("deadline_from_answer"):
                    sent = host.stamp()
                token = answer[1] if early is None and answer is not True else early
                return (yield from self._granted(Grant(lock, owner, token, sent + ttl), ttl))
            yield host.world.now + host.world.between(40, 200)
            if host.world.now >= until:
                raise Refused("not-granted", "held by another")

    def _owner(self) -> Owner:
        return self._name, next(self._count)

    def _silent(self) -> Any:
        """Return the answer that a defect reads from silence, or raise Unknown."""
        if self._host.defect.strikes("true_on_timeout"):
            return True
        if self._host.defect.strikes("false_though_granted"):
            raise Refused("not-granted", "not granted in time")
        raise Unknown("timeout")

    def _granted(self, grant: Grant, ttl: int) -> Steps:
        """A careful client releases an expired grant at once, as Redlock does."""
        host = self._host
        assert grant.deadline is not None
        if host.plan.careful and host.stamp() >= grant.deadline:
            yield from self._ask(host.service.drop, grant.lock, grant.owner)
            raise Refused("not-granted", "too late")
        if host.plan.watchdog:
            self._watch(grant, ttl)
        if host.plan.reentrant:
            self._held[grant.lock] = grant
        return grant

    def _reenter(self, mine: Grant, ttl: int) -> Steps:
        """Return whether this process still has the lock, and renew its lease."""
        sent = self._host.stamp()
        if mine.deadline is None or sent >= mine.deadline:
            return False
        answer = yield from self._sure(self._host.service.extend, *self._whose(mine), ttl)
        if not _yes(answer):
            return False
        mine.deadline = sent + ttl
        return True

    def _watch(self, grant: Grant, ttl: int) -> None:
        host = self._host
        assert grant.deadline is not None

        def renewed(deadline: int) -> None:
            grant.deadline = deadline
            host.renewed(grant)

        self._dogs[grant.owner] = Keepalive(
            host,
            ttl,
            grant.deadline,
            lambda: self._longer(grant, ttl),
            renewed,
            lambda said: host.lost(grant, "the service says so" if said else "not renewed in time"),
        )

    def _longer(self, grant: Grant, ttl: int) -> Steps:
        sent = self._host.stamp()
        try:
            answer = yield from self._ask(self._host.service.extend, *self._whose(grant), ttl)
        except Refused:
            return None
        return answer if answer is None else sent + ttl if _yes(answer) else False

    def extend(self, grant: Grant, ttl: int) -> Steps:
        sent = self._host.stamp()
        answer = yield from self._sure(self._host.service.extend, *self._whose(grant), ttl)
        if not _yes(answer):
            raise Refused("not-held")
        grant.deadline = sent + ttl

    def _whose(self, grant: Grant) -> tuple[Any, str, Owner]:
        return self._host.process, grant.lock, (grant.outer or grant).owner

    def release(self, grant: Grant) -> Steps:
        dog = self._dogs.pop(grant.owner, None)
        if dog is not None:
            dog.over = True
        if grant.outer is not None and not self._host.defect.strikes("frees_all"):
            yield from self._host.reach("before-request")
            return
        self._held.pop(grant.lock, None)
        if self._host.world.chance(self._host.plan.lost_releases):
            yield self._host.world.now + self._host.plan.timeout
            raise Unknown("timeout")
        answer = yield from self._freed(grant)
        if not _yes(answer) and not self._host.plan.polite:
            raise Refused("not-held")

    def _freed(self, grant: Grant) -> Steps:
        service = self._host.service
        lock, owner = grant.lock, (grant.outer or grant).owner
        if not self._host.defect.strikes("checks_then_deletes"):
            return (yield from self._sure(service.drop, lock, owner))
        if not (yield from self._sure(service.holds, lock, owner)):
            return False
        yield from self._host.reach("between-check-and-delete")
        return (yield from self._sure(service.delete, lock))

    def stop(self) -> None:
        for dog in self._dogs.values():
            dog.over = True

    def close(self) -> Steps:
        self.stop()
        yield self._host.world.now + self._host.world.between(0, 1)

    def _sure(self, act: Callable[..., Any], *given: Any) -> Steps:
        """Return the answer; raise Unknown if none comes."""
        answer = yield from self._ask(act, *given)
        if answer is None:
            raise Unknown("timeout")
        return answer

    def _ask(self, act: Callable[..., Any], *given: Any) -> Steps:
        """Send one request to one server; the next request goes to another after a timeout."""
        host = self._host
        names = host.cluster.names
        until = host.world.now + host.plan.timeout
        yield from host.reach("before-request")
        try:
            answer = yield from host.line.ask(names[self._server], until, act, *given)
        except Refused:
            self._server = (self._server + 1) % len(names)
            raise
        if answer is None:
            self._server = (self._server + 1) % len(names)
        yield from host.reach("replies-in-flight")
        return answer


def _yes(answer: Any) -> bool:
    """Return whether it says yes; with a defect, it may be the answer to another request."""
    return answer is True or (isinstance(answer, tuple) and answer[0] == "granted")
