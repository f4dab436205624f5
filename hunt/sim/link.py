"""Simulates the connections that fencepost opens for a lock."""

from __future__ import annotations

from heapq import heappush
from typing import Any

from fencepost.hunt.sim.network import LATER, Network, Refusal, Request, Server
from fencepost.hunt.sim.world import Node, Task, Wake
from fencepost.workloads.contract.lock import Failed, Indeterminate


class SimLink:
    """A Link (workloads/contract/lock.py) to a simulated server, with one request at a time.

    `request` is created as soon as an event may come between a request and its reply; until then
    only `command` and `_sent` represent it.
    """

    __slots__ = ("_alarm", "_sent", "_timeout", "_world", "client",
                 "command", "connected", "ends", "latency", "network", "request", "server",
                 "waiting", "was_reset")  # fmt: skip

    def __init__(self, network: Network, client: Node, server: Server, timeout_ns: int) -> None:
        self.network = network
        self._world = network.world
        self.client = client
        self.server = server
        self.ends = (client.index, server.index)
        self.latency = network.latency(client.index, server.index)
        self._timeout = timeout_ns
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
        """Open a connection. Raises Failed if that fails."""
        network = self.network
        cut = network.requests_cut or network.replies_cut
        if cut and (self.ends in network.requests_cut or self.ends in network.replies_cut):
            self._world.sleep(self._timeout)
            raise self._refused("no answer to connect")
        if not self.server.up:
            raise self._refused("connection refused")
        self.connected, self.was_reset = True, False
        network.open[self.server.index][self] = None

    def _refused(self, why: str) -> Failed:
        if self.network.tap is not None:
            self.network.tap.refused(self)
        return Failed("unreachable", f"{self.server.name}: {why}")

    def queue(self) -> None:
        """Queue the request if it was sent and is not queued yet."""
        world = self._world
        world.unsent = None
        self.request = request = Request(self, self.command, self._sent, self.server.boots)
        world.at(self._sent + self.latency, request)

    def receive(self) -> Any:
        world = self._world
        begun = world.now
        if world.unsent is self:
            # Neither an event nor an injection has come since it was sent.
            queue, server, latency = world.queue, self.server, self.latency
            arrives, step = begun + latency, world.step + 1
            if (
                (queue and arrives >= queue[0][0])
                or step >= world.decision
                or server.paused_until > arrives
            ):
                self.queue()
            else:
                # It is the next event in any case.
                world.unsent = None
                world.step = step
                world.now = arrives
                reply = server.handle(self.command)
                back, step = arrives + latency, step + 1
                network = self.network
                if (
                    reply is LATER
                    or (queue and back >= queue[0][0])
                    or step >= world.decision
                    or network.replies_cut
                ):
                    self._executed(reply)
                else:
                    if network.tap is not None:
                        network.tap.handled(self, self.command, reply)
                    world.step = step
                    world.now = back
                    if type(reply) is Refusal:
                        raise Failed("refused", f"{self.server.name}: {reply}")
                    return reply
        request = self.request
        assert request is not None
        if not request.ready:
            request = self._wait(begun)
        self.request = None
        if type(request.reply) is Refusal:
            raise Failed("refused", f"{self.server.name}: {request.reply}")
        return request.reply

    def _executed(self, reply: Any) -> None:
        """Create the request, now executed, because events may come before its reply arrives."""
        self.request = request = Request(self, self.command, self._sent, self.server.boots)
        if reply is LATER:
            self.server.wait(request)
        else:
            self.network.answer(request, reply)

    def _wait(self, begun: int) -> Request:
        """Wait for the reply, and return the request.

        Raises Indeterminate if the reply does not arrive within the timeout, which starts at
        `begun`.
        """
        world = self._world
        task = world.running
        assert task is not None
        if not self.was_reset:
            alarm = self._alarm = Wake(task)
            world.sequence += 1  # as World.at, in the most frequent place
            heappush(world.queue, (begun + self._timeout, world.sequence, alarm))
            self.waiting = task
            try:
                world.wait()
            finally:
                alarm.off = self._alarm.off = True
                self.waiting = self._alarm = None
        request = self.request
        if request is None:
            raise Indeterminate("timeout", f"{self.server.name}: the connection was closed")
        # A client that slept past its timeout still finds the reply that has arrived.
        if not request.ready and (request.arrives > world.now or request.off):
            self._drop()
            why = "connection reset" if self.was_reset else "no answer in time"
            raise Indeterminate("timeout", f"{self.server.name}: {why}")
        return request

    def arrived(self, request: Request) -> None:
        if self.request is request:
            request.ready = True
            if self.waiting is not None:
                self._world.ready = self.waiting

    def moved(self, request: Request, late: Request) -> None:
        if self.request is request:
            self.request = late

    def wait_for(self, timeout_ns: int) -> None:
        """Set the timeout for the next reply."""
        self._timeout = timeout_ns

    def call(self, *command: Any) -> Any:
        self.send(*command)
        return self.receive()

    def reset(self) -> None:
        """Wake the waiting client: the server has closed the connection."""
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
    """A SimLink with one timeout for connecting and another for replies."""

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
