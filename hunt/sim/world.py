"""Virtual time, and one scheduler for all that happens in it.

A run is a queue of events in order of time: a message arrives, a sleep is over, a fault ends.
Code of a client (a lock, its background threads) runs in greenlets, because locks are written to
block: where one waits, the scheduler goes on with the next event. Nothing runs beside anything
else, no clock but this one is looked at, and ties are broken by the order in which events were
made, so that a run is the same wherever it is run.

Each event, and each look at the clock or failpoint, is a *step*. Before a step the run may be told
to do something else than to go on (`decide`): that is the only place where faults come from.

An event that is next in any case is not queued: who waits for it goes on by itself.
That saves most queueing and most switches between greenlets, and changes no order. Nor does it
matter who looks what is next: a task that waits does so itself, and hands over to the next task, or
goes on where that is itself. Only what may end tasks is left to the greenlet that began the run
(`hub`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Protocol

from greenlet import GreenletExit, getcurrent, greenlet

NEVER = 1 << 62
MS = 1_000_000


class Node:
    """A machine of the simulated cluster. While it is paused, nothing on it goes on."""

    __slots__ = ("index", "name", "paused_until", "up")

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index
        self.up = True
        self.paused_until = 0


class Event(Protocol):
    """Something that will happen on a node. `off`: it is not to happen any more."""

    node: Node
    off: bool

    def due(self) -> None: ...


class Unsent(Protocol):
    """Who has sent something that is not queued yet."""

    def queue(self) -> None: ...


class Timer:
    """Calls a function."""

    __slots__ = ("call", "node", "off")

    def __init__(self, node: Node, call: Callable[[], None]) -> None:
        self.node = node
        self.call = call
        self.off = False

    def due(self) -> None:
        self.call()


class Reaper(Timer):
    """Calls a function that may end tasks: not in the middle of one that looks what is next."""

    __slots__ = ()


class Wake:
    """Lets a task go on."""

    __slots__ = ("node", "off", "task")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.node = task.node
        self.off = False

    def due(self) -> None:
        self.task.resume()


class Start(Wake):
    """Lets a task begin."""

    __slots__ = ()

    def due(self) -> None:
        self.task.begin()


class Carrier(greenlet):
    """Carries out one task after the other, of one run after the other.

    To make a greenlet, run and end it takes ten times as long as to switch to it and back: Python
    maps memory for each one's stack, and gives it back.
    """

    task: Task | None

    def run(self) -> None:
        while True:
            task, self.task = self.task, None
            assert task is not None
            hub, work = task.world.hub, task.work
            task.work = _done
            try:
                work()
            except GreenletExit:
                pass
            finally:
                task.over = True
            if task.left:
                return
            del task, work
            _idle.carriers.append(self)
            hub.switch()


class _Idle(threading.local):
    """The carriers of a thread that have nothing to carry out: no other can switch to them."""

    def __init__(self) -> None:
        self.carriers: list[Carrier] = []


_idle = _Idle()


class Task:
    """Code that may wait: a client's own, or a thread of its lock. `thread`: what stands for it
    where code asks for the current thread. `carrier`: who carries it out, once it has begun.
    `left`: it waits while it is being killed, and nobody comes back to it."""

    __slots__ = ("carrier", "left", "node", "over", "thread", "work", "world")

    def __init__(self, world: World, node: Node, work: Callable[[], None]) -> None:
        self.world = world
        self.node = node
        self.work = work
        self.over = self.left = False
        self.thread: Any = None
        self.carrier: Carrier | None = None

    def begin(self) -> None:
        """Let it go on for the first time."""
        if self.over:
            return
        carrier = _idle.carriers.pop() if _idle.carriers else Carrier()
        # What fails in it fails in this run; and what libraries keep by context is its own.
        carrier.parent, carrier.gr_context = self.world.hub, None
        carrier.task = self
        self.carrier = carrier
        self.world.ready = self.world.running = self

    def resume(self) -> None:
        """Let it go on once this event has happened."""
        self.world.ready = self

    def kill(self) -> None:
        """End it where it stands."""
        if not self.over:
            self.over = True
            if self.carrier is not None:
                # It waits, and finds that it is over: to throw something at it takes longer.
                self.carrier.switch()


class World:
    """`now` in ns. `decide(event)` is asked at step `decision`, and gives the next such step.
    `over`: nothing more is to happen. `ready`: who goes on now."""

    __slots__ = ("decide", "decision", "hub", "now", "nowhere", "over", "queue", "ready",
                 "running", "sequence", "step", "stopped", "tasks", "unsent")  # fmt: skip

    def __init__(self) -> None:
        self.now = 0
        self.step = 0
        self.decision = NEVER
        self.decide: Callable[[Event | None], int] = _nothing
        self.queue: list[tuple[int, int, Any]] = []
        self.sequence = 0
        self.hub = getcurrent()
        self.running: Task | None = None
        self.ready: Task | None = None
        self.tasks: list[Task] = []
        self.stopped = False
        self.over = False
        self.nowhere = Node("the network", -1)
        # What was sent and is not queued yet: before time passes or anything strikes, it is.
        self.unsent: Unsent | None = None

    def at(self, time: int, event: Event) -> None:
        self.sequence += 1
        heappush(self.queue, (time, self.sequence, event))

    def start(self, node: Node, work: Callable[[], None], at: int) -> Task:
        task = Task(self, node, work)
        self.tasks.append(task)
        self.at(at, Start(task))
        return task

    def run(self) -> None:
        """Let everything happen until it is `over`, or nothing is left to happen."""
        self._go_on(None)

    def _go_on(self, me: Task | None) -> None:
        """Let one event after the other happen, until it is this task that goes on."""
        queue = self.queue
        while queue and not self.over:
            time, number, event = heappop(queue)
            if event.off:
                continue
            if me is not None and type(event) is Reaper:
                heappush(queue, (time, number, event))
                break
            if time > self.now:
                self.now = time
            node = event.node
            if node.paused_until > time:
                self.at(node.paused_until, event)
                continue
            self.step += 1
            if self.step >= self.decision:
                self.decision = self.decide(event)
                if event.off:
                    continue
                if node.paused_until > time:
                    self.at(node.paused_until, event)
                    continue
            if type(event) is Wake:
                self.running = task = event.task
            else:
                self.running = None
                event.due()
                if self.ready is None:
                    continue
                task = self.ready
                self.ready = None
            if task is me:
                return
            if not task.over:
                task.carrier.switch()  # type: ignore[union-attr]  # it has begun
                if me is not None:
                    return
        if me is not None:
            self.hub.switch()

    def wait(self) -> None:
        """Called by a task: let others go on until somebody resumes it."""
        task = self.running
        assert task is not None
        if self.unsent is not None:
            self.unsent.queue()
        if task.over:  # it is being killed, by whoever goes on now
            task.left = True
            self.hub.switch()
        else:
            try:
                self._go_on(task)
            except Exception as error:  # of the event, which is not this task's
                self.hub.throw(error)
        self.running = task
        if task.over:
            raise GreenletExit

    def sleep(self, ns: int) -> None:
        time = self.now + ns if ns > 0 else self.now
        if self.unsent is not None:
            self.unsent.queue()
        queue = self.queue
        # It comes before all that is queued, and nothing strikes before.
        if (not queue or time < queue[0][0]) and self.step + 1 < self.decision:
            self.step += 1
            self.now = time
            return
        assert self.running is not None
        self.sequence += 1
        heappush(queue, (time, self.sequence, Wake(self.running)))
        self.wait()

    def point(self) -> None:
        """A step in the middle of a task's code."""
        self.step += 1
        if self.step >= self.decision:
            self.decide_here()

    def decide_here(self) -> None:
        """It is time for a decision, in the middle of a task's code."""
        if self.unsent is not None:
            self.unsent.queue()
        self.decision = self.decide(None)
        task = self.running
        if task is not None and task.node.paused_until > self.now:
            self.at(task.node.paused_until, Wake(task))
            self.wait()

    def stop(self) -> None:
        """End all tasks."""
        self.stopped = True
        for task in self.tasks:
            self.running = task
            task.kill()
        self.running = None

    def forget(self) -> None:
        """Let go of what was to happen, after `stop`: nothing that took part refers to another."""
        self.decide = _nothing
        self.queue.clear()
        self.tasks.clear()
        self.unsent = None


def _done() -> None:
    """A task is carried out once."""


def _nothing(event: Event | None) -> int:
    """No decision is to be taken."""
    return NEVER
