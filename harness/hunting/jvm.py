"""Lets the time of a JVM jump: its clocks, and the ends of its timed waits (x86-64).

A JVM adds the duration of a wait to its clock's reading, and has the kernel wait until then
(futex). Its monotonic clocks are set far ahead of the kernel's, so such a wait never ends by
itself. Linux shows the waits of all threads with their ends (`syscall` in proc(5), and the memory
of the process). When the time of the run has come to an end, the thread's system call is made to
return as after a timeout. The wall clock stays right.

Waits for messages with a timeout have a duration (poll, epoll_wait). If they end too early, the
JVM reads its clock, and waits for the rest.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from contextlib import suppress

from fencepost.harness.hunting import interrupt
from fencepost.hunt.sim.world import MS, NEVER

FAR_NS = 30 * 24 * 3600 * 10**9
"""How far ahead its monotonic clocks are: longer than any hunt."""
_VM = (
    b"VM Thread", b"VM Periodic Tas", b"Monitor Deflati", b"C1 CompilerThre", b"C2 CompilerThre",
    b"Sweeper thread", b"Service Thread", b"Common-Cleaner", b"G1 Service",
)  # fmt: skip
"""Threads of the JVM itself, which look for work from time to time. They do without it."""
_FUTEX, _RESTARTED, _POLL, _EPOLL = 202, 219, 7, (232, 281)
_SLEEPS = (35, 230)
_COMMAND, _WAIT_BITSET, _WALL = 0x7F, 9, 0x100
"""Parts of a futex's operation (futex(2)): an absolute time, of the wall clock."""
_TIMEOUT = {_POLL: 3, _FUTEX: 4} | dict.fromkeys(_EPOLL, 4)
"""The place of the timeout: after the call's number."""
_ENDLESS = 1 << 31
_TIMESPEC = struct.Struct("<qq")


class _Thread:
    """A thread's files in /proc, and its present wait. `ends`: of a wait for messages, by the
    monotonic clock that is shown."""

    def __init__(self, folder: str) -> None:
        self.call, self.has_run, self.ends = list[bytes](), b"", NEVER
        self._files = [os.open(f"{folder}/{one}", os.O_RDONLY) for one in ("syscall", "schedstat")]
        with open(f"{folder}/comm", "rb") as name:
            self.is_of_vm = name.read().strip() in _VM

    def reads(self, file: int) -> bytes:
        try:
            return os.pread(self._files[file], 256, 0)
        except OSError:
            return b""  # it has ended

    def close(self) -> None:
        for file in self._files:
            os.close(file)


class Waits:
    """The timed waits of a JVM's threads, in ns of the run (hunt/live/clocks.py). `shown_ns(wall)`:
    what its wall clock shows, or its monotonic one. `waits`: whether no thread is at work."""

    def __init__(
        self, pid: int, shown_ns: Callable[[bool], int], waits: Callable[[], bool]
    ) -> None:
        self.waits = waits
        self._folder = f"/proc/{pid}/task"
        self._shown_ns = shown_ns
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        self._threads: dict[str, _Thread] = {}

    def earliest(self, now: int) -> int | None:
        """Return when the first wait ends, NEVER if none does. None: a thread is at work."""
        ends = self._ends(now)
        return None if None in ends.values() else min(ends.values(), default=NEVER)  # type: ignore[type-var]

    def poke(self, wakes: bool = True) -> None:
        """Do nothing: each look is at all threads."""

    def end(self, now: int) -> None:
        """End the waits whose time has come."""
        for thread, ends in self._ends(now).items():
            if ends is not None and ends <= now:
                call = self._threads[thread].call[0]
                result = -errno.ETIMEDOUT if int(call) == _FUTEX else 0
                interrupt.returns(int(thread), (int(call), _RESTARTED), result)

    def _ends(self, now: int) -> dict[str, int | None]:
        try:
            threads = os.listdir(self._folder)
        except OSError:
            threads = []  # it has ended
        for gone in self._threads.keys() - set(threads):
            self._threads.pop(gone).close()
        for new in set(threads) - self._threads.keys():
            with suppress(OSError):
                self._threads[new] = _Thread(f"{self._folder}/{new}")
        return {name: self._of(thread, now) for name, thread in self._threads.items()}

    def _of(self, thread: _Thread, now: int) -> int | None:
        if thread.is_of_vm:
            return NEVER
        call = thread.reads(0).split()
        if not call:
            return NEVER
        if call == [b"running"] or int(call[0]) in _SLEEPS:
            return None  # it sleeps for a moment in reality
        again = int(call[0]) == _RESTARTED
        if again and call[1:] != thread.call[1:]:
            return NEVER  # a wait from before the clocks were set ends in reality
        if not again:
            thread.call = call
        number = int(thread.call[0])
        if (place := _TIMEOUT.get(number)) is None:
            return NEVER
        timeout = int(thread.call[place], 16)
        if number == _FUTEX:
            operation = int(thread.call[2], 16)
            timed = operation & _COMMAND == _WAIT_BITSET and timeout
            return self._until(timeout, bool(operation & _WALL), now) if timed else NEVER
        if timeout & 0xFFFF_FFFF >= _ENDLESS:
            return NEVER
        if not again and thread.has_run != (has_run := thread.reads(1)):
            thread.has_run = has_run
            thread.ends = self._shown_ns(False) + (timeout & 0xFFFF_FFFF) * MS
        return now + max(0, thread.ends - self._shown_ns(False))

    def _until(self, address: int, wall: bool, now: int) -> int:
        """Return the time of the run that this timespec of the process has."""
        try:
            seconds, more_ns = _TIMESPEC.unpack(os.pread(self._memory, 16, address))
        except (OSError, struct.error):
            return NEVER
        until_ns: int = seconds * 10**9 + more_ns
        return now + max(0, until_ns - self._shown_ns(wall))

    def close(self) -> None:
        for thread in self._threads.values():
            thread.close()
        self._threads.clear()
        os.close(self._memory)
