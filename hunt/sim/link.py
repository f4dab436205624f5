"""A lock's connection to a simulated server, where fencepost makes it."""

from __future__ import annotations

from typing import Any

from fencepost.hunt.sim.network import LATER, Network, Refusal, Request, Server
from fencepost.hunt.sim.world import Node, Task, Wake
from fencepost.workloads.contract.lock import Failed, Indeterminate


class SimLink:
    """A Link (workloads/contract/lock.py) to a simulated server, with one request at a time.

    `request` is made once anything may come between a request and its reply; before that
    `command` and `_sent` are all that there is of it.
    """

    __slots__ = ("_alarm", "_handle", "_sent", "_timeout", "_world", "client",
                 "command", "connected", "ends", "latency", "network", "request", "server",
                 "waiting", "was_reset")  # fmt: skip

    def __init__(self, network: Network, client: Node, server: Server, timeout_ns: int) -> None:
        self.network = network
        self._world = network.world
        self.client = client
        self.server = server
        self.ends = (client.index, server.index)
        self.latency = network.latency(*self.ends)
        self._timeout = timeout_ns
        self._handle = server.handle
        self.command: tuple[Any, ...] = ()
        self._sent = 0
        self.request: Request | None = None
        self.waiting: Task | None = None
        self._alarm: Wake | None = None
        self.connected = False
        self.was_reset = False

    def send(self, *command: Any) -> None:
        world = self._world
        world.step += 1
        if world.step >= world.decision:
            world.decide_here()
        if world.unsent is not None:
            world.unsent.queue()
        if not self.connected:
            self._connect()
        self.was_reset = False
        self.command = command
        self._sent = world.now
        self.request = None
        cuts = self.network.requests_cut
        if cuts and self.ends in cuts:
            self.request = Request(self, command, world.now, self.server.boots)
            if self.network.tap is not None:
                self.network.tap.lost(self, command)
        else:
            world.unsent = self

    def _connect(self) -> None:
        """Open a connection, or raise Failed."""
        network = self.network
        cut = network.requests_cut or network.replies_cut
        if cut and (self.ends in network.requests_cut or self.ends in network.replies_cut):
            self._world.sleep(self._timeout)
            raise self._refused("no answer to connect")
        if not self.server.up:
            raise self._refused("connection refused")
        self.connected = True
        network.open[self.server.index][self] = None

    def _refused(self, why: str) -> Failed:
        if self.network.tap is not None:
            self.network.tap.refused(self)
        return Failed("unreachable", f"{self.server.name}: {why}")

    def queue(self) -> None:
        """Queue the request that was sent and is not queued yet."""
        world = self._world
        world.unsent = None
        self.request = request = Request(self, self.command, self._sent, self.server.boots)
        world.at(self._sent + self.latency, request)

    def receive(self) -> Any:
        world = self._world
        begun = world.now
        if world.unsent is self:
            # Nothing has come in between since it was sent: no time has passed, nothing struck.
            queue, server = world.queue, self.server
            arrives = world.now + self.latency
            if (
                (queue and arrives >= queue[0][0])
                or world.step + 1 >= world.decision
                or server.paused_until > arrives
            ):
                self.queue()
            else:
                # It is next, in any case.
                world.unsent = None
                world.step += 1
                world.now = arrives
                reply = self._handle(self.command)
                back = arrives + self.latency
                network = self.network
                if (
                    reply is LATER
                    or (queue and back >= queue[0][0])
                    or world.step + 1 >= world.decision
                    or network.replies_cut
                ):
                    self._carried_out(reply)
                else:
                    world.step += 1
                    world.now = back
                    if network.tap is not None:
                        network.tap.handled(self, self.command, reply)
                    if type(reply) is Refusal:
                        raise Failed("refused", f"{server.name}: {reply}")
                    return reply
        request = self.request
        assert request is not None
        if not request.ready:
            request = self._wait(begun)
        self.request = None
        if type(request.reply) is Refusal:
            raise Failed("refused", f"{self.server.name}: {request.reply}")
        return request.reply

    def _carried_out(self, reply: Any) -> None:
        """The request has been carried out, and something may come before its reply arrives."""
        self.request = request = Request(self, self.command, self._sent, self.server.boots)
        if reply is LATER:
            self.server.wait(request)
        else:
            self.network.answer(request, reply)

    def _wait(self, begun: int) -> Request:
        """The request once its reply is there; Indeterminate where it does not come in time, from
        when somebody began to wait."""
        world = self._world
        assert world.running is not None
        if not self.was_reset:
            alarm = self._alarm = Wake(world.running)
            world.at(begun + self._timeout, alarm)
            self.waiting = world.running
            try:
                world.wait()
            finally:
                alarm.off = self._alarm.off = True
                self.waiting = self._alarm = None
        request = self.request
        if request is None:
            raise Indeterminate("timeout", f"{self.server.name}: the connection was closed")
        # Who slept past its timeout finds what has arrived meanwhile.
        if not request.ready and (request.arrives > world.now or request.off):
            self._drop()
            why = "connection reset" if self.was_reset else "no answer in time"
            raise Indeterminate("timeout", f"{self.server.name}: {why}")
        return request

    def arrived(self, request: Request) -> None:
        if self.request is request:
            request.ready = True
            if self.waiting is not None:
                self.waiting.resume()

    def moved(self, request: Request, late: Request) -> None:
        if self.request is request:
            self.request = late

    def wait_for(self, timeout_ns: int) -> None:
        """How long the next reply may take."""
        self._timeout = timeout_ns

    def call(self, *command: Any) -> Any:
        self.send(*command)
        return self.receive()

    def reset(self) -> None:
        """The server has gone, and says so to whoever waits."""
        self.connected = False
        if self.request is not None and self.ends not in self.network.replies_cut:
            self.was_reset = True
            if self.waiting is not None and self._alarm is not None:
                self._alarm.off = True
                self._alarm = Wake(self.waiting)
                self._world.at(self._world.now + self.latency, self._alarm)

    def _drop(self) -> None:
        if self.request is not None and not self.request.answered:
            self.server.left(self)
        self.request = None
        self.connected = False
        beside = self.network.open.get(self.server.index)
        if beside:
            beside.pop(self, None)

    def close(self) -> None:
        if self._world.unsent is self:
            self.queue()
        self._drop()


class Dialled(SimLink):
    """A SimLink with a time to connect in and another to be answered in."""

    __slots__ = ("_connect_ns", "_read_ns")

    def __init__(
        self, network: Network, client: Node, server: Server, connect_ns: int, read_ns: int
    ) -> None:
        super().__init__(network, client, server, connect_ns)
        self._connect_ns = connect_ns
        self._read_ns = read_ns

    def send(self, *command: Any) -> None:
        self.wait_for(self._connect_ns)
        super().send(*command)
        self.wait_for(self._read_ns)
