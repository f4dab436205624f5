"""Simulates threads and locks in virtual time: a thread is another task of its client.

Conditions, events, semaphores and queues consist of locks, so replacing threads and locks suffices.
Nothing runs in parallel, so a free lock is acquired at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fencepost.hunt.intercept.context import Place, here
from fencepost.hunt.sim.world import Task, Wake

_REAL_IDENT = threading.get_ident
# No real thread has an identifier this large.
_FIRST = 1 << 62


def new_name(real: Callable[[str], str]) -> Callable[[str], str]:
    """Replace the counter of names of threads: each client is a process."""

    def chosen(template: str) -> str:
        place = here()
        return real(template) if place is None else place.name(template)

    return chosen


def ident() -> int:
    """Return the identifier of the running thread."""
    place = here()
    if place is None:
        return _REAL_IDENT()
    task = place.world.running
    assert task is not None
    return _FIRST + task.number


class Lock:
    """A replacement for threading.Lock."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: list[Wake] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not self._taken:
            self._taken = True
            return True
        place = here()
        if not blocking or timeout == 0:
            return False
        if place is None:
            raise RuntimeError("code outside of the simulation waits for a simulated lock")
        return self._wait(place, timeout)

    def _wait(self, place: Place, timeout: float) -> bool:
        world = place.world
        until = None if timeout < 0 else world.now + round(timeout * 1e9)
        while self._taken:
            if until is not None and world.now >= until:
                return False
            turn = Wake(place.task)
            self._waiting.append(turn)
            if until is not None:
                world.at(until, turn)
            try:
                world.wait()
            finally:
                turn.off = True
                if turn in self._waiting:
                    self._waiting.remove(turn)
        self._taken = True
        return True

    def release(self) -> None:
        if not self._taken:
            raise RuntimeError("release unlocked lock")
        self._taken = False
        if self._waiting:
            turn = self._waiting.pop(0)
            world = _world_of(turn)
            if world is not None:
                world.world.at(world.world.now, turn)

    def locked(self) -> bool:
        return self._taken

    def _at_fork_reinit(self) -> None:
        self._taken = False

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock(Lock):
    """A replacement for threading.RLock, also as the lock of a condition."""

    def __init__(self) -> None:
        super().__init__()
        self._owner: int | None = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = ident()
        if self._owner == me:
            self._count += 1
            return True
        if self._taken and not super().acquire(blocking, timeout):
            return False
        self._taken, self._owner, self._count = True, me, 1
        return True

    def release(self) -> None:
        if self._owner != ident():
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._owner = None
            super().release()

    __enter__ = acquire

    def _at_fork_reinit(self) -> None:
        self._taken, self._owner, self._count = False, None, 0

    # Of a condition that waits.

    def _release_save(self) -> tuple[int, int | None]:
        state = self._count, self._owner
        self._count, self._owner = 0, None
        super().release()
        return state

    def _acquire_restore(self, state: tuple[int, int | None]) -> None:
        super().acquire()
        self._count, self._owner = state

    def _is_owned(self) -> bool:
        return self._owner == ident()


class Own:
    """Replaces a module's lock: each client has its own, as in a separate process."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def _mine(self) -> Any:
        place = here()
        if place is None:
            return self._real
        return place.locks.setdefault((id(self), place.task.node.index), Lock())

    def __enter__(self) -> bool:
        taken: bool = self._mine().acquire()
        return taken

    def __exit__(self, *_: object) -> None:
        self._mine().release()


def _world_of(turn: Wake) -> Place | None:
    return None if turn.off else here()


class Local:
    """A replacement for threading.local: each task has its own attributes."""

    def __getattribute__(self, name: str) -> Any:
        own = object.__getattribute__(self, "__dict__").setdefault(ident(), {})
        if name == "__dict__":
            return own
        try:
            return own[name]
        except KeyError:
            return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self.__dict__[name]
        except KeyError:
            raise AttributeError(name) from None


# The task of a thread, and a lock that is held until it ends.
_TASK, _ALIVE = "_fencepost_task", "_fencepost_alive"
_REAL_START, _REAL_JOIN = threading.Thread.start, threading.Thread.join
_REAL_ALIVE = threading.Thread.is_alive
_REAL_CURRENT = threading.current_thread


def start(thread: threading.Thread) -> None:
    """Replace Thread.start."""
    place = here()
    if place is None:
        return _REAL_START(thread)
    if getattr(thread, _TASK, None) is not None:
        raise RuntimeError("threads can only be started once")
    alive = Lock()
    alive.acquire()

    def work() -> None:
        with suppress(Exception):  # as threading.excepthook does, which only prints it
            try:
                thread.run()
            finally:
                alive.release()

    task = place.thread(place.task.node, work)
    setattr(thread, _TASK, task)
    setattr(thread, _ALIVE, alive)
    task.thread = thread
    return None


def join(thread: threading.Thread, timeout: float | None = None) -> None:
    """Replace Thread.join."""
    alive: Lock | None = getattr(thread, _ALIVE, None)
    if alive is None:
        return _REAL_JOIN(thread, timeout)
    if here() is None:
        return None  # its run has ended: Python joins thread pools at exit
    if alive.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
        alive.release()
    return None


def is_alive(thread: threading.Thread) -> bool:
    """Replace Thread.is_alive."""
    task: Task | None = getattr(thread, _TASK, None)
    return _REAL_ALIVE(thread) if task is None else not task.over


def interrupt_main(number: int = signal.SIGINT) -> None:
    """Replace _thread.interrupt_main: KeyboardInterrupt in the main thread ends a process, if its
    program does not catch it."""
    place = here()
    assert place is not None
    if number != signal.SIGINT:
        raise place.unknown(f"it sends its main thread the signal {number}")
    node = place.task.node
    place.end(node, f"{node.name} ends: its lock interrupts the main thread")


def current() -> threading.Thread:
    """Replace threading.current_thread."""
    place = here()
    thread = None if place is None else place.task.thread
    return _REAL_CURRENT() if thread is None else thread
