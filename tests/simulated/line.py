"""The messages of one operating-system process: requests, and the replies that it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from tests.simulated.cluster import Cluster
from tests.simulated.defects import Defect
from tests.simulated.network import Network
from tests.simulated.world import Process, Steps, Thread, World

_NOT_UP = object()


class Refused(Exception):
    """It certainly did not happen. `kind` and `text` as in a history's error."""

    def __init__(self, kind: str, text: str = "-") -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class Unknown(Refused):
    """It may have happened, or may happen yet."""


class Line:
    """`behind`: by server, the names of requests that timed out. A library that reuses such a
    connection takes the answer of the oldest for that of its next request."""

    def __init__(
        self, world: World, network: Network, cluster: Cluster, process: Process, defect: Defect
    ) -> None:
        self._world = world
        self._network = network
        self._cluster = cluster
        self._process = process
        self._defect = defect
        self._mail: dict[Any, Any] = {}
        self._waiting: dict[Any, Thread] = {}
        self._names = count()
        self._broken = False
        self.behind: dict[str, list[Any]] = {}

    def ask(self, to: str, until: int, act: Callable[..., Any], *given: Any) -> Steps:
        """Send a request once; return the reply, or None after the timeout.

        Raises:
            Refused: it certainly did not arrive.
        """
        name = self._send(to, act, *given)
        if name is None:
            raise Refused("unreachable", f"{to} rejects")
        reply = yield from self.wait(self._expected(to, name), until)
        if reply is _NOT_UP:
            raise Refused("unreachable", f"{to} is down")
        if reply is None and to in self._cluster.servers:
            self.behind.setdefault(to, []).append(name)
        return reply

    def ask_all(self, to: Iterable[str], until: int, act: Callable[..., Any], *given: Any) -> Steps:
        """Send a request to several servers at once, with the server as its first argument; return
        the replies that came in time, by server."""
        names = {server: self._send(server, act, server, *given) for server in to}
        found = {}
        for server, name in names.items():
            reply = None if name is None else (yield from self.wait(name, until))
            if reply is not None and reply is not _NOT_UP:
                found[server] = reply
        return found

    def _send(self, to: str, act: Callable[..., Any], *given: Any) -> Any:
        """Return the name of the reply; None if the request certainly does not arrive."""
        name = next(self._names)
        server = to in self._cluster.servers
        if self._broken and server:
            return None
        sent = self._network.send(self._process.node, to, self._arrive, to, name, act, given)
        if not sent and server and self._defect.strikes("never_reconnects"):
            self._broken = True
        return name if sent else None

    def _expected(self, to: str, name: Any) -> Any:
        """Return the name of the reply that is read for this request."""
        behind = self.behind.get(to)
        if behind and behind[0] in self._mail and self._defect.strikes("old_answer"):
            behind.append(name)
            return behind.pop(0)
        return name

    def wait(self, name: Any, until: int) -> Steps:
        """Return the reply with this name.

        A reply that arrived while its reader was paused beyond its timeout may be read or not.
        """
        while True:
            late = self._world.now >= until
            if name in self._mail and not (late and self._world.chance(0.5)):
                return self._mail.pop(name)
            if late:
                return None
            assert self._process.running is not None
            self._waiting[name] = self._process.running
            yield until

    def deliver(self, name: Any, reply: Any) -> None:
        self._mail[name] = reply
        thread = self._waiting.pop(name, None)
        if thread is not None:
            self._process.poke(thread)

    def _arrive(self, to: str, name: Any, act: Callable[..., Any], given: tuple[Any, ...]) -> None:
        if to not in self._cluster.servers:
            self._serve(to, name, act, given)
        elif self._cluster.servers[to].up:
            self._cluster.take(to, self._serve, to, name, act, given)
        elif self._world.chance(0.5):
            self._network.send(to, self._process.node, self.deliver, name, _NOT_UP)

    def _serve(self, to: str, name: Any, act: Callable[..., Any], given: tuple[Any, ...]) -> None:
        self._network.send(to, self._process.node, self.deliver, name, act(*given))
