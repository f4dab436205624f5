"""The time of a run with real clients, and its queue of events.

The queue is that of a simulated run (hunt/sim/world.py). A task that waits returns to the
conductor, so the runs of many schedules share one thread.

Time passes as in reality, but only while all clients wait: it stands still from the moment at which
a client has something to do until the client waits again. So a client that does not get the
processor, or a conductor that is late, changes nothing in the order of the events. Between any two
moments no more time passes in a run than in reality. A lease on a server therefore never ends
before its time on the client's own clock, and no sound lock is accused.

Where the clients' clocks can be set (clocks.py), they show the time of the run. A client that wakes
by a timer may have read its clock before the conductor sees that it woke. So the run's time then
advances to the latest time that the client may have read: it is never behind a client's clock. An
event that wakes a client happens at its own time, because until then all clients have waited.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from heapq import heappop
from typing import Any

from fencepost.hunt.live.clocks import Clocks
from fencepost.hunt.sim.network import Request
from fencepost.hunt.sim.world import MS, NEVER, Task, Wake, World

_LEAP_NS = 20_000
"""An event that is due as soon as this is due now: a request and its reply take longer really."""

_GRACE_NS = 1_000_000
"""Time begins to pass this long after all clients have begun to wait: a message may be under way in
the kernel."""
STILL_NS = 1_000_000_000
"""Clients that are never all at rest for so long, as one that connects again and again, do not stop
time for ever: it then catches up. It does not for clients that got no processor meanwhile, and
whose clocks stand."""


class RealWorld(World):
    """Runs the events that are due. `now` is the time of the run, in ns.

    `meet(request)` is called before a message arrives; a fault may stop the message then.
    `stirred`: a client has something to do, so time stands still. `begun`: all clients are ready;
    before, no time passes. `clocks`: those of the clients, if they can be set. `worked`: they have
    worked long enough since a moment at which time moved (worked.py).
    """

    __slots__ = ("_began_ns", "_inside", "_marks", "_moved", "_ran_to", "_runs", "begun", "clocks",
                 "meet", "origin_ns", "stirred", "stirred_ns", "worked")  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.origin_ns = time.monotonic_ns()
        self.stirred = self.begun = self._inside = False
        self.stirred_ns = 0
        self.meet: Callable[[Request], None] = _nothing
        self.clocks: Clocks | None = None
        self.worked: Callable[[object], bool] = _always
        # Whether the clients' clocks run, and the latest time that a client may have read.
        self._runs, self._ran_to = False, 0
        # When time began to pass: in reality since the origin, and in the run.
        self._began_ns = (0, 0)
        # Pairs of such times, at each moment at which time began to pass or to stand still.
        self._marks: list[tuple[int, int]] = [(0, 0)]
        self._moved = (0, 0)

    def look(self) -> int:
        """Look at the clock, and return the time."""
        if self.clocks is not None:
            passes = self._runs
        else:
            passes = not self.stirred and self.begun and not self._inside
        if passes:
            really, there = self._began_ns
            passed = time.monotonic_ns() - self.origin_ns - really
            self.now = max(self.now, min(there + passed, self.due_ns))
        return self.now

    def begin(self, clocks: Clocks | None = None) -> int:
        """Let time begin to pass, and return it: the same in each run."""
        self.stir()
        self.begun, self.now, self.clocks = True, MS, clocks
        if clocks is not None:
            clocks.stand(self.now)
        self._moved = self._mark(), MS
        return self.now

    def stir(self) -> None:
        """Let time stand still: a client has something to do."""
        if self.stirred:
            return
        self.look()
        if self.clocks is not None:
            if not self._inside:
                self.halt()
                self.now = max(self.now, self._ran_to)
            self.clocks.stand(self.now)
        self.stirred = True
        self.stirred_ns = self._mark()

    def stand_on(self) -> None:
        """Count how long time stands from now on: until now a program started."""
        self.stirred_ns = self._mark()
        self._moved = self.stirred_ns, self.now

    def halt(self) -> None:
        """Stop the clients' clocks, at the next event if its time has come."""
        if self._runs and self.clocks is not None:
            self.clocks.stand(self.look())
            really, there = self._began_ns
            self._ran_to = there + time.monotonic_ns() - self.origin_ns - really
            self._runs = False

    def go_on(self) -> None:
        """Let the clients' clocks run until the next event: no client has anything to do."""
        if self.clocks is None or self._runs:
            return
        self._ran_to = self.now
        if not (self.stirred or self.over or self.is_due):
            since = time.monotonic_ns()
            self.clocks.run(self.now, since)
            self._began_ns, self._runs = (since - self.origin_ns, self.now), True

    def jump(self, to: int) -> None:
        """Let the time be this one, not later than the next event: no client has anything to do.
        The clocks show it from the moment on at which one has."""
        self.now = self._ran_to = to
        self._mark()

    def ends(self) -> int:
        """Set the clients' clocks right, after the run; return how far they stay ahead."""
        clocks, self.clocks = self.clocks, None
        assert clocks is not None
        self._runs, self.stirred = False, True
        return clocks.set_right(max(self.now, self._ran_to), time.monotonic_ns())

    def rest(self, works: bool = False) -> int:
        """Let time pass: all clients wait, or one of them `works` without an end. Return how long
        it stood still."""
        really = time.monotonic_ns() - self.origin_ns
        if self.now - self._moved[1] >= MS:
            self._moved = really, self.now
        elif (
            self.begun
            and really - self._moved[0] > STILL_NS
            and (works or self.clocks is None or self.worked(self._moved))
        ):
            self.now = max(self.now, min(self.now + really - self._moved[0], self.due_ns))
            self._moved = really, self.now
        self._mark(0 if self.clocks is not None else _GRACE_NS)
        self.stirred, self._ran_to = False, self.now
        return really - self.stirred_ns

    @property
    def stands_ns(self) -> int:
        """Return for how long it has stood still."""
        really = time.monotonic_ns() - self.origin_ns
        return really - self.stirred_ns if self.stirred else 0

    def _mark(self, later_ns: int = 0) -> int:
        really = time.monotonic_ns() - self.origin_ns
        begun_ns, before_ns = really + later_ns, self._marks[-1][0]
        self._began_ns = begun_ns if begun_ns > before_ns else before_ns, self.now
        self._marks.append(self._began_ns)
        return really

    def shows(self, really: int) -> bool:
        """Return whether a client, which begins an op, has read the clocks that stand still here. A
        program may read the real ones instead, by a system call."""
        if self.clocks is None:
            return False
        shown = self._shown(really)
        # Clocks that jump stand while a client works; the real one may be behind them.
        return 0 <= self.clocks.behind(shown) <= MS if self.clocks.jumps else self.now >= shown

    def _shown(self, really: int) -> int:
        assert self.clocks is not None
        return really + self.origin_ns - self.clocks.base_ns

    def time_of(self, really: int, shown: bool = False) -> int:
        """Return the time in the run for one that a client read, in ns since the origin. `shown`:
        on the clocks that are set here."""
        if shown and self.clocks is not None:
            return max(0, min(self._shown(really), self.now))
        place = bisect_right(self._marks, (really, NEVER))
        begun, there = self._marks[max(place - 1, 0)]
        until = self._marks[place][1] if place < len(self._marks) else self.now
        return max(0, min(there + max(0, really - begun), until))

    @property
    def due_ns(self) -> int:
        """Return when the next event is due."""
        return self.queue[0][0] if self.queue else NEVER

    @property
    def is_due(self) -> bool:
        """Whether an event is due."""
        return self.due_ns <= self.look() + _LEAP_NS

    def sleep(self, ns: int) -> None:
        assert self.running is not None
        wake = Wake(self.running)
        self.at(self.now + max(ns, 0), wake)
        self._wait_for(wake)

    def _run_until(self, me: Task | None) -> None:
        """Run the due events, until a client has something to do; a waiting task leaves them to the
        conductor. Events at nearly the same time happen together, as the replies of five servers,
        because to wait for the client after each takes long."""
        if me is not None:
            self.hub.switch()
            return
        until = -1
        while self.queue and not self.over:
            if self.due_ns > until:
                if self.stirred or not self.is_due:
                    return
                until = self.due_ns + _LEAP_NS
            due, _, event = heappop(self.queue)
            if event.off:
                continue
            self.now = max(self.now, due)
            self._mark()
            self._inside = True  # an event takes no time
            try:
                self._happens(event)
            finally:
                self._inside = False

    def _happens(self, event: Any) -> None:
        message = isinstance(event, Request)
        if message:
            self.meet(event)
        node = event.node
        # The kernel takes a reply for a stopped client, which reads it once it continues.
        if not event.off and node.paused_until > self.now and not (message and event.back):
            self.at(node.paused_until, event)
        elif not event.off:
            self._begin_due(event)

    def _begin_due(self, event: Wake) -> None:
        self.running = None
        if type(event) is Wake:
            self.running = self.ready = event.task
        else:
            event.due()
        task, self.ready = self.ready, None
        if task is not None and not task.over:
            task.carrier.switch()  # type: ignore[union-attr]  # it has begun


def _nothing(request: Request) -> None:
    """Let a message arrive."""


def _always(since: object) -> bool:
    """Return True: where nothing is known of the clients, all of them seem to work."""
    return True
