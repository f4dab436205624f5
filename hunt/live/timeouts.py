"""Sees until when a client's process waits, so that the time of a run can jump there.

Linux shows the system call in which a thread sleeps, with its arguments (`syscall` in proc(5)).
Node.js and Go wait for messages and timers in one call, epoll_pwait, with a timeout in ms. A stop
by SIGSTOP interrupts this call, which the kernel never restarts (signal(7)). Both runtimes then
read their clock, and wait for the rest of the timeout: libuv in uv__io_poll, Go in netpoll.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress

from fencepost.hunt.sim.world import MS, NEVER

_EPOLL = {"x86_64": (b"232", b"281"), "aarch64": (b"22",)}.get(platform.machine(), ())
"""The numbers of epoll_wait and epoll_pwait."""
_TIMEOUT = 4
"""The place of the timeout: after the call's number, the descriptor, the events and their count."""
_ENDLESS = 1 << 31
"""Negative as 32 bits: no timeout."""


class Timeouts:
    """The timeouts in which the threads of a process sleep."""

    def __init__(self, pid: int) -> None:
        self._folder = f"/proc/{pid}/task"
        self._files: dict[str, int] = {}
        # By thread: how much it had run, and when its wait ends.
        self._known: dict[str, tuple[bytes, int]] = {}

    def earliest(self, now: int) -> int | None:
        """Return when the first timeout ends, in ns of the run, NEVER if none does. None: a thread
        is at work. `now`: the time of the run, at which each thread began to wait that has run
        since the last call."""
        try:
            threads = os.listdir(self._folder)
        except OSError:
            return NEVER  # it has ended
        for gone in self._known.keys() - set(threads):
            self._forget(gone)
        found = [self._of(thread, now) for thread in threads]
        return None if None in found else min(found, default=NEVER)  # type: ignore[type-var]

    def end(self, now: int) -> bool:
        """Return False: a stop ends them."""
        return False

    def _of(self, thread: str, now: int) -> int | None:
        call = self._read(thread, "syscall").split()
        if call == [b"running"]:
            return None
        if len(call) <= _TIMEOUT or call[0] not in _EPOLL:
            return NEVER
        timeout_ms = int(call[_TIMEOUT], 16) & 0xFFFF_FFFF
        if timeout_ms >= _ENDLESS:
            return NEVER
        has_run = self._read(thread, "schedstat")
        before = self._known.get(thread)
        if before is None or before[0] != has_run:
            before = self._known[thread] = has_run, now + timeout_ms * MS
        return before[1]

    def _read(self, thread: str, name: str) -> bytes:
        key = f"{thread}/{name}"
        try:
            file = self._files.get(key)
            if file is None:
                file = self._files[key] = os.open(f"{self._folder}/{key}", os.O_RDONLY)
            return os.pread(file, 256, 0)
        except OSError:
            return b""

    def _forget(self, thread: str) -> None:
        del self._known[thread]
        for name in ("syscall", "schedstat"):
            if (file := self._files.pop(f"{thread}/{name}", None)) is not None:
                os.close(file)

    def close(self) -> None:
        while self._files:
            with suppress(OSError):
                os.close(self._files.popitem()[1])
