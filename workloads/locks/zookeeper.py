"""The lock of ZooKeeper's recipes: ephemeral sequential znodes, each watching the one before it.

It follows "ZooKeeper Recipes and Solutions", with Curator's protection: the znode's name begins
with a unique value, so that a client that lost the reply to `create` can check whether its znode
exists. The token is the znode's czxid, or its sequence number. The client is kazoo's; its lock
recipe is not used. The session is in zookeeper_session.py.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Env, Failed, Grant, Indeterminate
from fencepost.workloads.contract.locktype import LockType, Reference
from fencepost.workloads.contract.option import WAITS, Option
from fencepost.workloads.locks.zookeeper_session import Session, gone, unsure
from fencepost.workloads.transport.deferred import Deferred

if TYPE_CHECKING:
    from kazoo import exceptions
    from kazoo.protocol import states
else:
    exceptions, states = Deferred("kazoo.exceptions"), Deferred("kazoo.protocol.states")

ROOT = "/fencepost"
_PATIENCE_S = 0.05


def _before(queue: Sequence[str], place: int) -> str:
    return queue[place - 1]


class ZooKeeperLock:
    """`options`: token (czxid, sequence), wait_ms, node_timeout_ms.

    `watched(queue, place)` returns the znode whose deletion a client at that place of the queue
    waits for: the one before its own, so that a release wakes one client.
    """

    def __init__(
        self,
        env: Env,
        nodes: Sequence[str],
        options: Mapping[str, Any],
        watched: Callable[[Sequence[str], int], str] = _before,
    ) -> None:
        self._env = env
        self._options = options
        self._watched = watched
        self._timeout_s = options["node_timeout_ms"] / 1000
        self._session = Session(env, nodes, self._timeout_s)
        self._folders: set[str] = set()

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        self._session.open(ttl_ns)
        until = self._env.now() + self._options["wait_ms"] * 1_000_000
        folder = f"{ROOT}/{name}"
        self._ensure(folder)
        node = self._create(folder, until)
        try:
            wakeups = self._wait(folder, node, until)
            stat = self._ask(lambda: self._client.exists_async(node))
            if stat is None:
                raise Failed("not-granted", "the session ended while the client was waiting")
            deadline = self._session.hold(node)
        except Failed:
            self._leave(node)
            raise
        self._env.failpoint("replies-in-flight")
        token = stat.czxid if self._options["token"] == "czxid" else _sequence(node)
        return Grant(name, token, deadline, node, wakeups=wakeups)

    @property
    def _client(self) -> Any:
        return self._session.client

    def _ensure(self, folder: str) -> None:
        for path in (ROOT, folder):
            if path not in self._folders:
                with suppress(exceptions.NodeExistsError):
                    self._ask(lambda path=path: self._client.create_async(path))  # type: ignore[misc]
                self._folders.add(path)

    def _create(self, folder: str, until: int) -> str:
        """Create the client's znode, once, even if replies are lost; return its path."""
        secret = self._env.random.randbytes(8).hex()
        lost = False
        while True:
            try:
                if lost:
                    children = self._client.get_children_async(folder).get(timeout=self._timeout_s)
                    mine = [child for child in children if child.startswith(secret)]
                    if mine:
                        return f"{folder}/{mine[0]}"
                request = self._client.create_async(
                    f"{folder}/{secret}-lock-", ephemeral=True, sequence=True
                )
                return str(request.get(timeout=self._timeout_s))
            except gone() as error:
                raise Failed("not-granted", f"the session ended: {error!r}") from error
            except unsure() as error:
                lost = True
                if self._env.now() >= until:
                    raise Indeterminate("timeout", f"no reply to create: {error!r}") from error
                self._env.sleep(_PATIENCE_S)

    def _wait(self, folder: str, node: str, until: int) -> int:
        """Wait until no znode precedes the client's own; return how often it was woken."""
        mine = node.rpartition("/")[2]
        wakeups = 0
        while True:
            children = self._ask(lambda: self._client.get_children_async(folder))
            line = sorted(children, key=_sequence)
            if mine not in line:
                raise Failed("not-granted", "the session ended while the client was waiting")
            place = line.index(mine)
            if place == 0:
                return wakeups
            wakeups += self._sleep_until_gone(f"{folder}/{self._watched(line, place)}", until)

    def _sleep_until_gone(self, node: str, until: int) -> int:
        """Return 1 if the deletion of the znode woke the client, 0 if it was gone or something else
        did."""
        events: queue.SimpleQueue[states.WatchedEvent] = queue.SimpleQueue()
        if self._ask(lambda: self._client.exists_async(node, watch=events.put)) is None:
            return 0
        try:
            event = events.get(timeout=max(0.0, (until - self._env.now()) / 1e9))
        except queue.Empty:
            raise Failed(
                "not-granted", f"not its turn within {self._options['wait_ms']} ms"
            ) from None
        return int(event.type == states.EventType.DELETED)

    def _leave(self, node: str) -> None:
        """Delete the client's znode: the client no longer waits, so it must not be granted the
        lock."""
        try:
            self._client.delete_async(node).get(timeout=self._timeout_s)
        except (exceptions.NoNodeError, *gone()):
            return
        except unsure() as error:
            raise Indeterminate("timeout", f"could not leave the queue: {error!r}") from error

    def _ask(self, request: Callable[[], Any]) -> Any:
        """Return the answer to a request that is safe to repeat."""
        end = self._env.now() + int(2 * self._timeout_s * 1e9)
        while True:
            try:
                return request().get(timeout=self._timeout_s)
            except gone() as error:
                raise Failed("not-granted", f"the session ended: {error!r}") from error
            except unsure() as error:
                if self._env.now() >= end:
                    raise Failed("unreachable", f"no reply: {error!r}") from error
                self._env.sleep(_PATIENCE_S)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        """Prove that the session is alive, and the znode with it. This extends nothing."""
        return self._session.extend(grant)

    def release(self, grant: Grant) -> None:
        self._session.let_go(grant.secret)
        try:
            self._client.delete_async(grant.secret).get(timeout=self._timeout_s)
        except (exceptions.NoNodeError, *gone()) as error:
            raise Failed("not-held", f"the znode is gone: {error!r}") from error
        except (*unsure(), exceptions.KazooException) as error:
            raise Indeterminate("timeout", f"no reply to delete: {error!r}") from error

    def close(self) -> None:
        self._session.close()


def _sequence(node: str) -> int:
    return int(node[-10:])


LOCK = LockType(
    name="zookeeper",
    what="ZooKeeper's recipe: ephemeral sequential znodes, each watching the one before it",
    make=ZooKeeperLock,
    servers=3,
    kind="zookeeper",
    options={"token": Option("czxid", ("czxid", "sequence"), what="of the znode"), **WAITS},
    promises={"minority": True, "fifo": True, "one_wakeup": True},
    least_ttl_ms=1000,
    # Closing the client ends its session, and the ephemeral znodes go with it.
    ends_with="close",
    renews=True,
    # A wait that is much longer than a lease would be a late grant by itself.
    reference=Reference("close", {"wait_ms": "2000"}),
)
