"""A ZooKeeper session by kazoo's client, and how long its client may believe in it.

A session lives for its timeout after the leader last heard of it. A follower's own answer proves
nothing, because a follower that is cut off from the leader answers for a while. So a heartbeat is a
`sync`, which goes through the leader: when it is answered, the session lived, and the path from the
follower to the leader was open. Twice a tick the follower reports to the leader every session with
a request (LearnerHandler, Leader.PING). So the leader knew of every heartbeat that was sent a tick
before this one, and the timeout runs from the latest of those.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from fencepost.workloads.contract.lock import Env, Failed, Grant, Indeterminate
from fencepost.workloads.locks.keepalive import Keepalive
from fencepost.workloads.transport.deferred import Deferred, load

if TYPE_CHECKING:
    from kazoo import client as clients
    from kazoo import exceptions, retry
    from kazoo.handlers import threading as handler
    from kazoo.protocol import states
else:
    clients, exceptions = Deferred("kazoo.client"), Deferred("kazoo.exceptions")
    retry, handler = Deferred("kazoo.retry"), Deferred("kazoo.handlers.threading")
    states = Deferred("kazoo.protocol.states")

# harness/servers/zookeeper.py starts the servers with this tick.
TICK_NS = 500_000_000
_HEARTBEATS = 6


def unsure() -> tuple[type[Exception], ...]:
    """Errors after which the request may have been carried out, or may be later."""
    return (
        exceptions.ConnectionLoss,
        exceptions.OperationTimeoutError,
        handler.KazooTimeoutError,
        exceptions.SessionMovedError,
    )


def gone() -> tuple[type[Exception], ...]:
    """Errors that mean that the session is over, and its znodes with it."""
    return exceptions.SessionExpiredError, exceptions.ConnectionClosedError


class Session:
    """A session that reports holds as `lost` once kazoo reports SUSPENDED or LOST, or no heartbeat
    was answered in time; and as `renewed` with each answered one."""

    def __init__(self, env: Env, nodes: Sequence[str], timeout_s: float) -> None:
        load(clients, exceptions, retry, handler, states)
        self._env = env
        self._ttl_ns = 0
        self._timeout_s = timeout_s
        self._hosts = [f"{host}:{port}" for host, port in map(env.address, nodes)]
        env.random.shuffle(self._hosts)
        self._client: clients.KazooClient | None = None
        # kazoo's own connection keeps the session alive.
        self._keepalive = Keepalive(env, self._renewed, self._unheard, renews=False)
        self._lock = threading.Lock()
        self._held: set[str] = set()
        # When the answered heartbeats were sent; the first entry is the session's start.
        self._sent: deque[int] = deque(maxlen=64)

    @property
    def client(self) -> clients.KazooClient:
        """Return kazoo's client of the open session."""
        assert self._client is not None
        return self._client

    def open(self, ttl_ns: int) -> None:
        """Begin the session with this timeout, unless there is one.

        Failed if no server is connected within the time of one request.
        """
        if self._client is None:
            self._ttl_ns = ttl_ns
            self._client = self._made()
            self._sent.append(self._env.now())
            self._client.start_async()
            self._watch()
        end = self._env.now() + int(self._timeout_s * 1e9)
        while not self.client.connected:
            if self._env.now() >= end:
                raise Failed("unreachable", "no session with any server")
            self._env.sleep(0.01)

    def _made(self) -> clients.KazooClient:
        made = clients.KazooClient(
            ",".join(self._hosts),
            timeout=self._ttl_ns / 1e9,
            randomize_hosts=False,
            connection_retry=retry.KazooRetry(max_tries=-1, delay=0.05, backoff=1, max_delay=0.5),
            # The lock decides how to handle a lost reply.
            command_retry=retry.KazooRetry(max_tries=0),
        )
        made.add_listener(self._listen)
        return made

    def _watch(self) -> None:
        never = self._env.now() + 2 * self._ttl_ns
        self._keepalive.watch("session", self._ttl_ns, never, self.beat, _HEARTBEATS)

    def beat(self) -> int:
        """Send one heartbeat; return the deadline that it proves."""
        sent = self._env.now()
        try:
            self.client.sync_async("/").get(timeout=self._timeout_s)
        except gone() as error:
            raise Failed("not-held", f"the session ended: {error!r}") from error
        except unsure() as error:
            raise Indeterminate("timeout", f"no heartbeat was answered: {error!r}") from error
        with self._lock:
            known = max((t for t in self._sent if t <= sent - TICK_NS), default=self._sent[0])
            self._sent.append(sent)
            return known + self._ttl_ns

    def hold(self, node: str) -> int:
        """Watch over a hold; return its current deadline."""
        deadline = self.beat()
        with self._lock:
            self._held.add(node)
        return deadline

    def holds(self, node: str) -> bool:
        with self._lock:
            return node in self._held

    def let_go(self, node: str) -> None:
        with self._lock:
            self._held.discard(node)

    def extend(self, grant: Grant) -> Grant:
        """Prove that the session of a grant lives. Failed "not-held" if not."""
        if not self.holds(grant.secret):
            raise Failed("not-held", "the session was lost")
        return replace(grant, deadline=self.beat())

    def _renewed(self, _: str, deadline: int) -> None:
        with self._lock:
            held = list(self._held)
        for node in held:
            self._env.renewed(node, deadline)

    def _unheard(self, _: str, why: str) -> None:
        self._lose(why)
        self._watch()

    def _listen(self, state: str) -> None:
        if state in (states.KazooState.SUSPENDED, states.KazooState.LOST):
            self._lose(f"the connection is {state}")
        if state == states.KazooState.LOST:
            with self._lock:
                # The next session is opened after this.
                self._sent.clear()
                self._sent.append(self._env.now())

    def _lose(self, why: str) -> None:
        with self._lock:
            held, self._held = self._held, set()
        for node in held:
            self._env.lost(node, why)

    def close(self) -> None:
        """End the session, on the servers too if they can be reached."""
        self._keepalive.close()
        if self._client is None:
            return
        self.client.remove_listener(self._listen)
        with suppress(Exception):
            self.client.stop()
        with suppress(Exception):
            self.client.close()
