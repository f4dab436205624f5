"""Stops every thread of a process, or some for longer, unnoticed, by ptrace.

SIGSTOP would be visible: a server that another fault has paused must not be resumed by this one,
and none may stay stopped because this program was killed half-way. A traced process returns to its
state, stopped or not, as soon as its tracer detaches or dies.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from fencepost.node.processes import lives

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
# Programs that a server's start may exec before the server itself.
_ON_THE_WAY = {"bash", "dash", "env", "setpriv", "setsid", "sh"}

# System calls in which a thread waits, by number (asm/unistd.h): read, poll, select, nanosleep,
# recvfrom, futex, restart_syscall, clock_nanosleep, epoll_wait, pselect6, ppoll, epoll_pwait.
_WAITS = {
    "x86_64": {0, 7, 23, 35, 45, 202, 219, 230, 232, 270, 271, 281},
    "aarch64": {22, 63, 72, 73, 98, 101, 115, 128, 207},
}
_DYING_S = 2.0
# A Python thread that waits for the interpreter lock gives way every 5 ms, the default of
# sys.setswitchinterval. It must not be stopped, because the thread that releases the lock may have
# to see it taken (CPython's ceval_gil.c).
_REST_S, _AT_REST_S = 0.012, 2.0

_kept: dict[int, dict[int, int]] = {}
"""The threads that this process keeps stopped, by process, with their pending signals."""

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
    """Stop all threads of `pid`, none of them inside one of these ranges.

    A thread inside is stepped, instruction by instruction, until it has left. Trying again later
    would not help, because a thread in a loop of system calls is always caught at the end of one.
    The first byte of a range is outside: a thread there has not entered it yet.

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


def keep(pid: int, tids: Sequence[int]) -> None:
    """Stop these threads of `pid`, each while it waits, until `let_go_on` or the end of this
    process. OSError: one has ended, or does not wait within _AT_REST_S; none is stopped then."""
    let_go_on(pid)
    held = _kept[pid] = {}
    try:
        for tid in tids:
            held[tid] = _stop_waiting(tid)
    except BaseException:
        let_go_on(pid)
        raise


def traced_threads(pid: int) -> list[int]:
    return list(_kept.get(pid, ()))


def let_go_on(pid: int) -> None:
    for tid, number in _kept.pop(pid, {}).items():
        _let_go(tid, number)


def _stop_waiting(tid: int) -> int:
    """Stop a thread in a wait that has lasted for _REST_S, and return its pending signal."""
    end = time.monotonic() + _AT_REST_S
    while time.monotonic() < end:
        before = _wait(tid)
        time.sleep(_REST_S)
        if before is not None and _wait(tid) == before:
            number = _stop_thread(tid)
            if number is None:
                break
            # Being stopped counts as giving way.
            if (after := _wait(tid)) is not None and after[0] == before[0]:
                return number
            _let_go(tid, number)
        elif not lives(tid):
            break
    raise OSError(f"thread {tid} {'does not wait for anything' if lives(tid) else 'has ended'}")


def _wait(tid: int) -> tuple[str, str] | None:
    """Return the system call in which a thread waits, with its arguments, and how often the thread
    has given way so far; None if it does not wait."""
    try:
        with open(f"/proc/{tid}/syscall") as call, open(f"/proc/{tid}/status") as status:
            within = call.read().strip()
            gave_way = next(row for row in status if row.startswith("voluntary_ctxt_switches"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    number = within.partition(" ")[0]
    if not number.isdigit() or int(number) not in _WAITS[platform.machine()]:
        return None
    return within, gave_way


def _stop(pid: int) -> dict[int, int]:
    """Stop every thread; return for each the signal that it was about to receive, or 0. Those that
    are kept are stopped already, outside of all code."""
    held: dict[int, int] = {}
    gone: set[int] = set(traced_threads(pid))
    try:
        # A running thread can start another: repeat until there is no new one.
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
        if not lives(tid):
            return None
        raise
    _, status = os.waitpid(tid, _WALL)
    if not os.WIFSTOPPED(status):
        return None
    # A stop without an event is the delivery of a signal, which must still be delivered.
    return 0 if status >> 16 else os.WSTOPSIG(status)


def _let_go(tid: int, number: int) -> None:
    try:
        _ptrace(_DETACH, tid, number)
    except OSError:
        # A killed thread takes a moment to end, and leaves a zombie until its tracer has waited for
        # it.
        end = time.monotonic() + _DYING_S
        while lives(tid):
            if time.monotonic() > end:
                raise
            time.sleep(0.001)
        with suppress(ChildProcessError):
            os.waitpid(tid, _WALL | os.WNOHANG)


def _step_out(pid: int, tid: int, ranges: Ranges) -> Iterator[int]:
    """Step a thread out of these ranges; return the signals that arrived meanwhile."""
    for _ in range(_STEPS):
        if not _inside(pid, tid, ranges):
            return
        _ptrace(_SINGLESTEP, tid)
        _, status = os.waitpid(tid, _WALL)
        if not os.WIFSTOPPED(status):
            return
        if not status >> 16 and os.WSTOPSIG(status) != signal.SIGTRAP:
            yield os.WSTOPSIG(status)
    raise OSError(f"process {pid}: a thread does not leave the code to be replaced")


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

    Detaches at the first that is not a shell: that one is the server.
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
