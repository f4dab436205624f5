"""Virtual time, and one scheduler for all events.

A run is a queue of events ordered by time: a message arrives, a sleep ends, a fault ends. Client
code (a lock and its background threads) runs in greenlets, because locks are written to block: when
one waits, the scheduler continues with the next event. Nothing runs in parallel, no other clock is
read, and events at the same time run in the order of their creation. So a run is the same on every
machine.

Each event, each read of the clock and each failpoint is a *step*. Before a step, `decide` may
inject something; faults come from nowhere else.

An event that would run next in any case is not queued: the task that waits for it continues
directly. This saves most queueing and most switches between greenlets, and changes no order. For
the same reason a waiting task picks the next event itself, and switches to the task of that event
or continues. Only events that may end tasks are left to the greenlet that started the run (`hub`).
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
    """A machine of the simulated cluster; while it is paused, its events wait."""

    __slots__ = ("index", "name", "paused_until", "up")

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index
        self.up = True
        self.paused_until = 0


class Event(Protocol):
    """A future event on a node; `off` cancels it."""

    node: Node
    off: bool

    def due(self) -> None: ...


class Unsent(Protocol):
    """A sender whose message is not queued yet."""

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
    """Calls a function that may end tasks, never while another task picks the next event."""

    __slots__ = ()


class Wake:
    """Resumes a task."""

    __slots__ = ("node", "off", "task")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.node = task.node
        self.off = False

    def due(self) -> None:
        self.task.resume()


class Start(Wake):
    """Starts a task."""

    __slots__ = ()

    def due(self) -> None:
        self.task.begin()


class Carrier(greenlet):
    """Runs tasks one after another, across runs.

    Creating, running and ending a greenlet takes ten times as long as switching to it and back,
    because Python maps and unmaps memory for each stack.

    A greenlet counts its recursion from the depth at which it was started. So those that run tasks
    again and again are started by the hub: started by one another, they would reach Python's limit
    after some thousands of runs. `deep`: it was started by another one, and runs one task.
    """

    task: Task | None = None
    deep = False

    def run(self) -> None:
        while True:
            if self.task is None:  # the hub has started it
                _idle.carriers.append(self)
                self.parent.switch()  # type: ignore[union-attr]  # it has been started
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
            if task.left or self.deep:
                return
            del task, work
            _idle.carriers.append(self)
            hub.switch()


class _Idle(threading.local):
    """The idle carriers of a thread; other threads cannot switch to them. `wanted`: how many a run
    needs at a time, as far as is known."""

    def __init__(self) -> None:
        self.carriers: list[Carrier] = []
        self.wanted = 1

    def fill(self) -> None:
        """Start as many as are wanted."""
        while len(self.carriers) < self.wanted:
            Carrier().switch()

    def take(self) -> Carrier:
        if self.carriers:
            return self.carriers.pop()
        self.wanted = min(self.wanted + 1, _MOST_IDLE)
        carrier = Carrier()
        carrier.deep = True
        return carrier


_MOST_IDLE = 64


_idle = _Idle()


class Task:
    """Code that may wait: a client's, or a thread of its lock.

    `number`: its place among the tasks of its run. `thread`: the object that represents it to code
    that asks for the current thread. `carrier`: the greenlet that runs it, once it has begun.
    `left`: it waited while it was being killed, and is never resumed. `thrown`: an exception that
    its present wait raises, and the event that ends it.
    """

    __slots__ = ("carrier", "left", "node", "number", "over", "thread", "thrown", "work", "world")

    def __init__(self, world: World, node: Node, work: Callable[[], None]) -> None:
        self.world = world
        self.node = node
        self.work = work
        self.number = len(world.tasks)
        self.over = self.left = False
        self.thread: Any = None
        self.thrown: tuple[BaseException, Wake] | None = None
        self.carrier: Carrier | None = None

    def begin(self) -> None:
        """Start the task."""
        if self.over:
            return
        carrier = _idle.take()
        # An exception in the task goes to this run; context variables are the task's own.
        carrier.parent, carrier.gr_context = self.world.hub, None
        carrier.task = self
        self.carrier = carrier
        self.world.ready = self.world.running = self

    def resume(self) -> None:
        """Resume the task after the present event."""
        self.world.ready = self

    def throw(self, error: BaseException) -> None:
        """End the wait of the task with an exception."""
        self.thrown = error, Wake(self)
        self.world.at(self.world.now, self.thrown[1])

    def kill(self) -> None:
        """End the task at its present step."""
        if not self.over:
            self.over = True
            if self.carrier is not None:
                # It finds `over` set when it resumes; throwing an exception takes longer.
                self.carrier.switch()


class World:
    """Runs the events.

    `now` in ns. `decide(event)` is called at step `decision`, and returns the next such step.
    `over`: no further event runs. `ready`: the task that runs next.
    """

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
        # A message that is sent but not queued; it is queued before time passes or a fault is
        # injected.
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
        """Run events until `over` is set or no event is left."""
        _idle.fill()
        self._run_until(None)

    def _run_until(self, me: Task | None) -> None:
        """Run events until this task is the next to run."""
        queue = self.queue
        while queue and not self.over:
            time, number, event = heappop(queue)
            if event.off:
                continue
            kind = type(event)
            if kind is Reaper and me is not None:
                heappush(queue, (time, number, event))
                break
            if time > self.now:
                self.now = time
            node = event.node
            if node.paused_until > time:
                self.at(node.paused_until, event)
                continue
            self.step = step = self.step + 1
            if step >= self.decision:
                self.decision = self.decide(event)
                if event.off:
                    continue
                if node.paused_until > time:
                    self.at(node.paused_until, event)
                    continue
            if kind is Wake:
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
                task.carrier.switch()  # it has begun
                if me is not None:
                    return
        if me is not None:
            self.hub.switch()

    def wait(self) -> None:
        """Suspend the calling task until another event resumes it."""
        task = self.running
        assert task is not None
        if self.unsent is not None:
            self.unsent.queue()
        if task.over:  # another task is killing it
            task.left = True
            self.hub.switch()
        else:
            try:
                self._run_until(task)
            except Exception as error:  # an error of the event, not of this task
                self.hub.throw(error)
        self.running = task
        if task.over:
            raise GreenletExit
        if task.thrown is not None:
            thrown, wake = task.thrown
            task.thrown, wake.off = None, True
            raise thrown

    def sleep(self, ns: int) -> None:
        time = self.now + ns if ns > 0 else self.now
        if self.unsent is not None:
            self.unsent.queue()
        queue = self.queue
        # It is the next event, and no injection is due before it.
        if (not queue or time < queue[0][0]) and self.step + 1 < self.decision:
            self.step += 1
            self.now = time
            return
        assert self.running is not None
        self.sequence += 1
        wake = Wake(self.running)
        heappush(queue, (time, self.sequence, wake))
        self._wait_for(wake)

    def _wait_for(self, wake: Wake) -> None:
        try:
            self.wait()
        except BaseException:
            wake.off = True  # it ends no later wait
            raise

    def point(self) -> None:
        """Take a step in the middle of a task's code."""
        self.step += 1
        if self.step >= self.decision:
            self.decide_here()

    def decide_here(self) -> None:
        """Call `decide` in the middle of a task's code."""
        if self.unsent is not None:
            self.unsent.queue()
        self.decision = self.decide(None)
        task = self.running
        if task is not None and task.node.paused_until > self.now:
            wake = Wake(task)
            self.at(task.node.paused_until, wake)
            self._wait_for(wake)

    def stop(self) -> None:
        """End all tasks."""
        self.stopped = True
        for task in self.tasks:
            self.running = task
            task.kill()
        self.running = None

    def forget(self) -> None:
        """Drop all future events after `stop`, so that no object of the run refers to another."""
        self.decide = _nothing
        self.queue.clear()
        self.tasks.clear()
        self.unsent = None


def _done() -> None:
    """Replace a task's work once it has begun, so that nothing keeps it alive."""


def _nothing(event: Event | None) -> int:
    """Return that no decision is due."""
    return NEVER
