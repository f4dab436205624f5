"""The program of a client: its operating-system process, from start to end.

Its events are those of the harness' own worker. After an op of unknown outcome it closes its
sessions, reports that (`close`), and continues as its successor, under a new number. It can be
stopped and killed at every point where it waits, and at named points. An idle client asks for
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from tests.simulated.events import Events, Sim
from tests.simulated.library import Host
from tests.simulated.line import Line, Refused
from tests.simulated.sections import Gone, Sections
from tests.simulated.world import MS, Process, Steps


class Client:
    """`armed`: the point at which a fault stops it; there it calls `reached`."""

    def __init__(self, sim: Sim, number: int) -> None:
        self.sim = sim
        self.events = Events(sim, number)
        self.node = self.events.node
        self.armed = ""
        self.reached: Callable[[], None] = lambda: None
        self._until = sim.plan.length
        self._start()

    @property
    def announced(self) -> int:
        return self.events.announced

    def _start(self) -> None:
        sim = self.sim
        self.os = Process(sim.world, self.node)
        self._line = Line(sim.world, sim.network, sim.cluster, self.os, sim.defect)
        self._begin()
        self.os.start(self._run())

    def _begin(self) -> None:
        """Give a process a library of its own, with sessions of its own."""
        sim = self.sim
        self._sections = sections = Sections(sim, self.events, self._line, self.reach)
        host = Host(
            *(sim.world, sim.network, sim.cluster, sim.service, sim.quorum, sim.defect, sim.plan),
            process=self.os,
            line=self._line,
            stamp=self.events.stamp,
            reach=self.reach,
            renewed=sections.renewed,
            lost=sections.lost,
            expired=sections.expired,
        )
        sections.use(host)

    def restart(self) -> None:
        """Start a new program, under the number of a successor."""
        self.buried(self.os)
        self.events.announced += self.sim.plan.clients
        self.events.process = self.events.announced
        self._start()

    def die(self, certain: int) -> None:
        """Kill or crash it; `certain`: until when it certainly lived, apart from its last op."""
        self.os.kill()
        self.armed = ""
        for held in self._sections.holds.values():
            held.died(self.sim.world.now, max(certain, self.events.last))

    def buried(self, os: Process) -> None:
        """Let the harness notice that this program is dead."""
        if os is self.os:
            self.events.buried()

    def reach(self, point: str) -> Steps:
        """Pass a named point: it may be stopped here, or take its time."""
        if self.armed == point:
            self.armed = ""
            self.reached()
            yield self.sim.world.now
        elif self.sim.world.chance(0.2):
            most = 40 if self.sim.world.chance(0.1) else 3
            yield self.sim.world.now + self.sim.world.between(0, most)

    def _run(self) -> Steps:
        world, plan = self.sim.world, self.sim.plan
        yield world.now + world.between(20, 20 + plan.rest / MS)
        if self.node not in plan.asking:
            yield max(world.now, self._until)
        while world.now < self._until:
            try:
                yield from self._sections.section()
            except Gone:
                yield from self._succeed()
            yield world.now + world.between(1, 1 + plan.rest / MS)
        yield from self._close()

    def _succeed(self) -> Steps:
        """Close, and continue as the next process, which keeps nothing of this one."""
        yield from self._close()
        self.events.process = self.events.announced
        self._begin()

    def _close(self) -> Steps:
        silent, events = self.sim.plan.silent_close, self.events
        for held in self._sections.holds.values():
            held.ended(events.last if silent else events.stamp(), "close")
        lock = self._sections.lock
        if silent:
            with suppress(Refused):
                yield from lock.close()
            return
        events.invoke("close", {})
        try:
            yield from lock.close()
            events.complete("ok", "close", {})
        except Refused as error:
            events.complete("info", "close", {}, Refused("raised", error.text))
