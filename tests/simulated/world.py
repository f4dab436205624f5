"""Virtual time, and operating-system processes whose threads run on it.

A thread is a generator that yields the time (ns) until which it waits, and continues then or when
it is poked. A process that is paused runs nothing: due threads run when it resumes. One that is
dead runs nothing ever again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from heapq import heappop, heappush
from random import Random
from typing import Any

MS = 1_000_000
SECOND = 1000 * MS
FOREVER = 10**18

Steps = Generator[int, None, Any]
"""A thread's code: it yields times to wait for."""


class World:
    """Events in order of virtual time; `now` is ns since the start of the test."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 0
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def at(self, time: int, act: Callable[..., None], *given: Any) -> None:
        self._count += 1
        heappush(self._events, (time if time > self.now else self.now, self._count, act, given))

    def after(self, delay: int, act: Callable[..., None], *given: Any) -> None:
        self.at(self.now + delay, act, *given)

    def run(self, until: int) -> None:
        events = self._events
        while events and events[0][0] <= until:
            self.now, _, act, given = heappop(events)
            act(*given)
        self.now = until

    def between(self, least: float, most: float) -> int:
        """Draw a time evenly; both bounds in ms, the result in ns."""
        return int(self.random.uniform(least, most) * MS)

    def chance(self, share: float) -> bool:
        return share > 0 and self.random.random() < share


class Process:
    """An operating-system process on a node: it can be paused, and it can be killed."""

    def __init__(self, world: World, node: str) -> None:
        self.world = world
        self.node = node
        self.paused = False
        self.dead = False
        self.running: Thread | None = None
        self._frozen: list[tuple[Thread, int]] = []

    def start(self, steps: Steps) -> Thread:
        thread = Thread(self, steps)
        self.poke(thread)
        return thread

    def poke(self, thread: Thread) -> None:
        """Wake this thread because something arrived for it."""
        self.world.after(0, thread.go_on, thread.turn)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        frozen, self._frozen = self._frozen, []
        for thread, turn in frozen:
            self.world.after(self.world.between(0, 0.2), thread.go_on, turn)

    def kill(self) -> None:
        self.dead = True

    def freeze(self, thread: Thread, turn: int) -> None:
        self._frozen.append((thread, turn))


class Thread:
    """One thread of a process. `turn` counts its waits, so that an old alarm is ignored."""

    __slots__ = ("_process", "_steps", "turn")

    def __init__(self, process: Process, steps: Steps) -> None:
        self._process = process
        self._steps = steps
        self.turn = 0

    def go_on(self, turn: int) -> None:
        process = self._process
        if turn != self.turn or process.dead:
            return
        if process.paused:
            process.freeze(self, turn)
            return
        self.turn += 1
        process.running = self
        until = next(self._steps, FOREVER)
        if not process.dead and until < FOREVER:
            process.world.at(until, self.go_on, self.turn)
