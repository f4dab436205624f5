"""A lock library with sessions: holds live as long as the client's session does.

It resends its requests until they are answered, to one server after the other, and the service
applies each only once. If the service ends sessions by their connection, the client may see no
deadline at all: it learns that its session has ended when it asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.simulated.library import RESEND, Grant, Host, Keepalive
from tests.simulated.line import Refused, Unknown
from tests.simulated.state import Owner, Socket
from tests.simulated.world import Steps


@dataclass
class Session:
    """`over`: '' while it lives; "said" by the service; "clock": not renewed in time."""

    name: str
    deadline: int
    socket: Socket
    dog: Keepalive | None = None
    over: str = ""
    held: list[Grant] = field(default_factory=list)


class SessionLock:
    def __init__(self, host: Host, name: str) -> None:
        self._host = host
        self._name = name
        self._count = count(1)
        self._server = host.world.random.randrange(len(host.cluster.names))
        self._session: Session | None = None
        self._waits: Session | None = None
        self._of: dict[Owner, Session] = {}

    def acquire(self, lock: str, ttl: int, shared: bool) -> Steps:
        host, plan = self._host, self._host.plan
        until = host.world.now + plan.wait
        session = yield from self._open(ttl, until)
        owner = (session.name, next(self._count))
        self._waits = session
        try:
            answer = yield from self._queue(session, owner, lock, shared, until)
        finally:
            self._waits = None
        if plan.confirm:
            yield from self._confirm(session, owner, lock, ttl)
        elif session.over and not plan.naive:
            yield from self._leave(owner, lock, "the session ended while it waited")
        token, wakeups = answer[1:]
        deadline = session.deadline if plan.visible else None
        grant = Grant(lock, owner, token, deadline, wakeups if plan.wakeups else None)
        self._of[owner] = session
        if not session.over:
            session.held.append(grant)
        return grant

    def _open(self, ttl: int, until: int) -> Steps:
        host = self._host
        if self._session is not None and not self._session.over:
            return self._session
        if self._session is not None:
            self._session.socket.closed = True
        name = f"{self._name}/{next(self._count)}"
        sent, socket = host.stamp(), Socket(host.process)
        opened = yield from self._surely(until, host.service.open, socket, name, ttl)
        if not opened:
            socket.closed = True
            raise Refused("not-granted", "no session could be opened")
        self._session = session = Session(name, sent + ttl, socket)
        session.dog = Keepalive(
            host,
            ttl,
            session.deadline if host.plan.visible else 10**18,
            lambda: self._beat(session, ttl),
            lambda deadline: self._renewed(session, deadline),
            lambda said: self._over(session, "said" if said else "clock"),
        )
        return session

    def _beat(self, session: Session, ttl: int) -> Steps:
        host = self._host
        sent = host.stamp()
        until = host.world.now + ttl // 3
        answer = yield from self._once(until, host.service.beat, session.name)
        return sent + ttl if answer else answer

    def _renewed(self, session: Session, deadline: int) -> None:
        if not self._host.plan.visible or deadline <= session.deadline:
            return
        session.deadline = deadline
        for grant in session.held:
            grant.deadline = deadline
            self._host.renewed(grant)

    def _over(self, session: Session, how: str) -> None:
        session.over = how
        held, session.held = session.held, []
        for grant in held:
            self._host.lost(grant, f"the session is over: {how}")
        if how == "said" and session is self._waits:
            self._host.expired("the session is over")

    def _queue(self, session: Session, owner: Owner, lock: str, shared: bool, until: int) -> Steps:
        """Wait until it is granted; ask again now and then, because the notice may be lost."""
        host = self._host
        news = ("news", owner)
        while True:
            server = host.cluster.names[self._server]
            answer = yield from self._once(
                min(until, host.world.now + RESEND),
                host.service.enqueue,
                host.process,
                owner,
                lock,
                shared,
                self._teller(server, news),
            )
            if answer is not None and answer[0] == "queued":
                again = host.world.now + host.world.between(200, 500)
                answer = (yield from host.line.wait(news, min(until, again))) or answer
            if answer is not None and answer[0] == "granted":
                yield from host.reach("granted")
                return answer
            if answer is not None and answer[0] != "queued":
                raise Refused("not-granted", "the session ended while it waited")
            if host.world.now >= until or session.over:
                yield from self._leave(owner, lock, "not its turn")

    def _teller(self, server: str, news: Any) -> Callable[[Any], None]:
        host = self._host

        def tell(answer: Any) -> None:
            if host.cluster.serves(server):
                host.network.send(server, host.process.node, host.line.deliver, news, answer)

        return tell

    def _confirm(self, session: Session, owner: Owner, lock: str, ttl: int) -> Steps:
        """Check after the wait whether the hold still exists, which renews its session."""
        host = self._host
        sent = host.stamp()
        until = host.world.now + host.plan.timeout
        mine = yield from self._surely(until, host.service.confirm, owner, lock)
        if not mine or session.over:
            yield from self._leave(owner, lock, "the session ended while it waited")
        session.deadline = max(session.deadline, sent + ttl)

    def _leave(self, owner: Owner, lock: str, why: str) -> Steps:
        """Leave the queue; raise Refused once that is certain, else Unknown."""
        host = self._host
        until = host.world.now + host.plan.timeout
        left = yield from self._surely(until, host.service.leave, owner, lock)
        if left:
            raise Refused("not-granted", why)
        raise Unknown("timeout", "could not leave the queue")

    def extend(self, grant: Grant, ttl: int) -> Steps:
        host = self._host
        session = self._of[grant.owner]
        if session.over:
            raise Refused("not-held", "the session is over")
        sent = host.stamp()
        until = host.world.now + host.plan.timeout
        alive = yield from self._surely(until, host.service.beat, session.name)
        if alive is None:
            raise Unknown("timeout")
        if not alive:
            raise Refused("not-held", "the session is over")
        if host.plan.visible:
            session.deadline = max(session.deadline, sent + ttl)
            grant.deadline = session.deadline
            if session.dog is not None:
                session.dog.deadline = session.deadline

    def release(self, grant: Grant) -> Steps:
        host = self._host
        session = self._of[grant.owner]
        if grant in session.held:
            session.held.remove(grant)
        until = host.world.now + host.plan.timeout
        freed = yield from self._surely(until, host.service.free, grant.owner, grant.lock)
        if freed is None:
            raise Unknown("timeout")
        if not freed and not host.plan.polite:
            raise Refused("not-held")

    def stop(self) -> None:
        for session in (self._session, *self._of.values()):
            if session is not None and session.dog is not None:
                session.dog.over = True

    def close(self) -> Steps:
        """End the session; the service may learn of it late, or never."""
        self.stop()
        session, host = self._session, self._host
        if session is None:
            return
        session.socket.closed = True
        if session.over:
            return
        until = host.world.now + host.plan.timeout
        ended = yield from self._surely(until, host.service.end, session.name)
        if not ended and not host.plan.polite:
            raise Unknown("timeout")

    def _surely(self, until: int, act: Callable[..., Any], *given: Any) -> Steps:
        """Resend the request to other servers until an answer; return None after the timeout."""
        while True:
            patience = min(until, self._host.world.now + RESEND)
            answer = yield from self._once(patience, act, *given)
            if answer is not None:
                return answer
            if self._host.world.now >= until:
                return None

    def _once(self, until: int, act: Callable[..., Any], *given: Any) -> Steps:
        host = self._host
        names = host.cluster.names
        yield from host.reach("before-request")
        try:
            answer = yield from host.line.ask(names[self._server], until, act, *given)
        except Refused:
            self._server = (self._server + 1) % len(names)
            yield host.world.now + host.world.between(5, 30)
            return None
        if answer is None:
            self._server = (self._server + 1) % len(names)
        return answer
