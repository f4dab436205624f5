"""Sees whether and until when a client's process waits, so that the time of a run can jump there.

Linux shows the system call in which a thread sleeps, with its arguments (`syscall` in proc(5)).
Node.js and Go wait for messages and timers in one call, epoll_pwait, with a timeout in ms. A signal
interrupts this call, which the kernel never restarts (signal(7)). Both runtimes then read their
clock, and wait for the rest of the timeout: libuv in uv__io_poll, Go in netpoll.

A look at a thread takes microseconds, and most threads have not run since the last look. So the
threads are looked at again only after the process got processor time, or was sent something: until
then none of them does anything.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from contextlib import suppress
from functools import cache

from fencepost.hunt.live.work_time import WorkTime
from fencepost.hunt.sim.world import MS, NEVER

_CALLS: dict[str, tuple[tuple[bytes, ...], tuple[bytes, ...], bytes, int]] = {
    "x86_64": ((b"232", b"281"), (b"202", b"35", b"230"), b"0", 234),
    "aarch64": ((b"22",), (b"98", b"101", b"115"), b"63", 131),
}
"""By machine, the numbers of calls: epoll_wait and epoll_pwait; futex, nanosleep and
clock_nanosleep; read; tgkill."""
_EPOLL, _SLEEPS, _READ, _TGKILL = _CALLS.get(platform.machine(), ((), (), b"-", 0))
_ENDED = b""
_POLLS = frozenset((*_EPOLL, _ENDED))
_WAITS = _POLLS | frozenset(_SLEEPS)
_READ_INPUT = _READ + b" 0x0 "
_TIMEOUT = 4
"""The place of the timeout: after the call's number, the descriptor, the events and their count."""
_TRUSTS = 3
"""How many looks at a process that was woken and has not run are spared."""
_ENDLESS = 1 << 31
"""Negative as 32 bits: no timeout."""
_CALL = 256
"""No line is longer: a call has nine numbers."""
_ASLEEP = frozenset(b"StTZX")
"""States in which a thread does nothing (proc(5))."""


class Timeouts:
    """The timeouts in which the threads of a process sleep.

    `first_alone`: its first thread does all the work, so the process waits if this one does. The
    others collect garbage and compile. OSError if its calls cannot be seen.
    """

    def __init__(self, pid: int, first_alone: bool = False) -> None:
        self._pid = pid
        self._first = str(pid)
        self._alone = first_alone
        # Go rounds its timeouts down. It would wait again for the rest of the millisecond.
        self._more_ms = 0 if first_alone else 1
        self._folder = os.open(f"/proc/{pid}/task", os.O_RDONLY | os.O_DIRECTORY)
        # Its threads, with their files `syscall`: those first that were found at work last.
        self._threads: dict[str, int] = {}
        self._links = 0
        self._files: dict[tuple[str, str], int] = {}
        # By thread: how much it had run, and when its wait ends.
        self._known: dict[str, tuple[bytes, int]] = {}
        self._work = WorkTime(pid)
        # The processor time at which it was last seen to wait, and at which `_end` was found.
        self._waits_at: int | None = None
        self._ends_at: int | None = None
        self._end = NEVER
        # The calls in which its threads were last seen, and the processor time then.
        self._calls: dict[str, bytes] = {}
        self._calls_at: int | None = None
        # The processor time at which it was woken, and how many looks may find that it has not run.
        self._woken_at: int | None = None
        self._trusts = 0
        try:
            os.pread(self._file(self._first, "syscall"), _CALL, 0)
        except OSError:
            self.close()
            raise

    def poke(self, wakes: bool = True) -> None:
        """Look at its threads again: it was sent something. `wakes`: it surely waits for this."""
        self._waits_at = self._ends_at = self._calls_at = None
        if wakes:
            self._woken_at, self._trusts = self._work.ns(), _TRUSTS

    def waits(self) -> bool:
        """Whether it does nothing until something happens, or a timeout ends."""
        work_ns = self._work.ns()
        if work_ns is None or work_ns == self._waits_at:
            return True
        if work_ns == self._woken_at and self._trusts:
            self._trusts -= 1
            return False
        if self._alone:
            # Its first thread sleeps for moments elsewhere, too: until another one has done
            # something.
            if _number(self._read(self._first, "syscall")) not in _POLLS:
                return False
        elif not self._all_wait():
            return False
        if self._work.ns() != work_ns:
            # A thread has run meanwhile, and may have woken one that was already looked at.
            return self._alone
        self._waits_at = work_ns
        if not self._alone:
            self._calls_at = work_ns
        return True

    def earliest(self, now: int) -> int | None:
        """Return when the first timeout ends, in ns of the run, NEVER if none does. None: a thread
        is at work. `now`: the time of the run, at which each thread began to wait that has run
        since the last call."""
        work_ns = self._work.ns()
        if work_ns is None:
            return NEVER
        if work_ns == self._ends_at:
            return self._end
        if work_ns != self._calls_at and not self._all_wait():
            return None
        self._end = min((self._of(*one, now) for one in self._calls.items()), default=NEVER)
        self._ends_at = work_ns if self._work.ns() == work_ns else None
        return self._end

    def end(self, now: int) -> None:
        """Let the threads look at their clocks whose timeouts have ended by this time of the run.

        A stop of one thread that is taken back at once interrupts its call. It stops the process at
        most for a moment.
        """
        for thread, (_, end) in self._known.items():
            if end <= now:
                _tgkill(self._pid, int(thread), signal.SIGSTOP)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGCONT)
        self.poke()

    # Threads.

    def _all_wait(self) -> bool:
        """Whether none of its threads runs, or waits for the processor or a disk."""
        self._calls.clear()
        try:
            # The number of links is that of the threads and two more (proc_task_getattr).
            if os.fstat(self._folder).st_nlink != self._links:
                self._list()
        except OSError:
            return True  # it has ended
        for thread, file in self._threads.items():
            try:
                call = os.pread(file, _CALL, 0)
            except OSError:
                self._links = 0  # it has ended: list them again
                continue
            if _number(call) not in _WAITS and self._works(thread, call):
                self._threads = {thread: file} | self._threads
                return False
            self._calls[thread] = call
        return True

    def _list(self) -> None:
        there = os.listdir(self._folder)
        for gone in self._threads.keys() - set(there):
            self._forget(gone)
        self._links = len(there) + 2
        self._threads = {}
        for thread in there:
            with suppress(OSError):
                self._threads[thread] = self._file(thread, "syscall")

    def _works(self, thread: str, call: bytes) -> bool:
        """Whether it is at work in a call that may wait for a disk, or in none. A read of the
        standard input waits for the hunt."""
        if call[:7] == b"running":
            return True
        if call.startswith(_READ_INPUT):
            return False
        text = self._read(thread, "stat")
        # The name of the program, which may have any characters, ends with the last parenthesis.
        return b")" in text and text[text.rfind(b")") + 2] not in _ASLEEP

    def _of(self, thread: str, call: bytes, now: int) -> int:
        """Return when the timeout of a thread ends, or NEVER."""
        words = call.split(b" ", _TIMEOUT + 1)
        timeout_ms = int(words[_TIMEOUT], 16) & 0xFFFF_FFFF if words[0] in _EPOLL else _ENDLESS
        if timeout_ms >= _ENDLESS:
            self._known.pop(thread, None)
            return NEVER
        has_run = self._read(thread, "schedstat")
        before = self._known.get(thread)
        if before is None or before[0] != has_run:
            before = self._known[thread] = has_run, now + (timeout_ms + self._more_ms) * MS
        return before[1]

    def _read(self, thread: str, name: str) -> bytes:
        try:
            return os.pread(self._file(thread, name), _CALL, 0)
        except OSError:
            return b""  # it has ended

    def _file(self, thread: str, name: str) -> int:
        key = thread, name
        file = self._files.get(key)
        if file is None:
            path = f"{thread}/{name}"
            file = self._files[key] = os.open(path, os.O_RDONLY, dir_fd=self._folder)
        return file

    def _forget(self, thread: str) -> None:
        self._known.pop(thread, None)
        for key in [key for key in self._files if key[0] == thread]:
            os.close(self._files.pop(key))

    def close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])
        os.close(self._folder)


def _number(call: bytes) -> bytes:
    return call[: call.find(b" ")] if call else _ENDED


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _tgkill(pid: int, thread: int, number: int) -> None:
    """Send a signal to one thread; one that has ended gets none."""
    _libc().syscall(_TGKILL, pid, thread, number)
