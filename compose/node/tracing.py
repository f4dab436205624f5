"""Stops every thread of a process, without its noticing, by ptrace.

SIGSTOP would do, but shows: a server that is paused by another fault must not be resumed by
this one, and one must not stay stopped because this program was killed half-way. A traced
process goes on as it was, stopped or not, as soon as its tracer lets go or is gone.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_DETACH = 17
_CONT = 7
_SINGLESTEP = 9
_SEIZE = 0x4206
_INTERRUPT = 0x4207
_O_TRACEEXEC = 0x10
_EVENT_EXEC = 4
_WALL = 0x40000000

# More than any of the replaced code has instructions.
_STEPS = 5000
# What a server's start may go through before the program that is the server.
_ON_THE_WAY = {"bash", "dash", "env", "setpriv", "setsid", "sh"}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)

Ranges = list[tuple[int, int]]


def _ptrace(request: int, tid: int, data: int = 0) -> None:
    if _libc.ptrace(request, tid, None, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace of {tid}: {os.strerror(number)}")


@contextmanager
def stopped(pid: int, outside: Ranges) -> Iterator[None]:
    """All threads of `pid` are stopped, and none of them is inside one of these ranges.

    One that is inside runs on, instruction by instruction, until it has left: trying again
    later would not do, as a thread in a loop of system calls is always caught at the end of
    one. The first byte of a range is outside: who stands there has not entered it yet.

    Raises:
        OSError: no such process, no permission, or a thread that does not leave a range.
    """
    held = _stop(pid)
    late: list[tuple[int, int]] = []
    try:
        for tid in held:
            late += [(tid, number) for number in _step_out(pid, tid, outside)]
        yield
    finally:
        for tid, number in held.items():
            _let_go(tid, number)
        for tid, number in late:
            _libc.tgkill(pid, tid, number)


def _stop(pid: int) -> dict[int, int]:
    """Stop every thread; for each the signal that it was about to receive, or 0."""
    held: dict[int, int] = {}
    gone: set[int] = set()
    try:
        # A thread that is not stopped yet can start another: until there is no new one.
        while new := {int(tid) for tid in os.listdir(f"/proc/{pid}/task")} - held.keys() - gone:
            for tid in new:
                number = _stop_thread(tid)
                if number is None:
                    gone.add(tid)
                else:
                    held[tid] = number
        if not held:
            raise ProcessLookupError(f"process {pid} has ended")
    except BaseException:
        for tid, number in held.items():
            _let_go(tid, number)
        raise
    return held


def _stop_thread(tid: int) -> int | None:
    try:
        _ptrace(_SEIZE, tid)
        _ptrace(_INTERRUPT, tid)
    except OSError:
        if _ended(tid):
            return None
        raise
    _, status = os.waitpid(tid, _WALL)
    if not os.WIFSTOPPED(status):
        return None
    # A stop without an event is a signal's delivery, and the signal must still be delivered.
    return 0 if status >> 16 else os.WSTOPSIG(status)


def _ended(tid: int) -> bool:
    try:
        with open(f"/proc/{tid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def _let_go(tid: int, number: int) -> None:
    try:
        _ptrace(_DETACH, tid, number)
    except OSError:
        if not _ended(tid):
            raise


def _step_out(pid: int, tid: int, ranges: Ranges) -> Iterator[int]:
    """Let a thread leave these ranges; the signals that it was to receive meanwhile."""
    for _ in range(_STEPS):
        if not _inside(pid, tid, ranges):
            return
        _ptrace(_SINGLESTEP, tid)
        _, status = os.waitpid(tid, _WALL)
        if not os.WIFSTOPPED(status):
            return
        if not status >> 16 and os.WSTOPSIG(status) != signal.SIGTRAP:
            yield os.WSTOPSIG(status)
    raise OSError(f"process {pid}: a thread stays inside the code that was to be replaced")


def _inside(pid: int, tid: int, ranges: Ranges) -> bool:
    try:
        with open(f"/proc/{pid}/task/{tid}/syscall") as file:
            counter = int(file.read().split()[-1], 16)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return any(start < counter < end for start, end in ranges)


def seize_for_exec(pid: int) -> None:
    _ptrace(_SEIZE, pid, _O_TRACEEXEC)


def after_exec(pid: int) -> Iterator[None]:
    """Yield whenever the traced `pid` is about to run a program's first instruction.

    Ends, and lets go, with the first that is no shell: that one is the server.
    """
    while True:
        _, status = os.waitpid(pid, _WALL)
        if not os.WIFSTOPPED(status):
            return
        event = status >> 16
        if event == _EVENT_EXEC:
            yield
            if os.path.basename(os.readlink(f"/proc/{pid}/exe")) not in _ON_THE_WAY:
                _ptrace(_DETACH, pid)
                return
        _ptrace(_CONT, pid, 0 if event else os.WSTOPSIG(status))
