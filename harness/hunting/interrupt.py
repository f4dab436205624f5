"""Lets a system call in which a thread sleeps return at once, by ptrace (x86-64).

The thread is stopped within the call for a moment. Its result is replaced before it continues, so
that the kernel does not restart the call.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from contextlib import suppress

CAN = platform.machine() == "x86_64"
"""Whether this is known for this machine. Registers have other places elsewhere."""
_SEIZE, _INTERRUPT, _DETACH, _PEEK, _POKE = 0x4206, 0x4207, 17, 3, 6
_WALL = 0x40000000
_RESULT, _CALL = 8 * 10, 8 * 15
"""The places of rax and orig_rax in the thread's registers (struct user)."""
_INTERRUPTED = {-errno.EINTR, -512, -513, -514, -516}
"""Results of a call that sleeps, when it is interrupted: the last four say that the kernel restarts
it (ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK)."""
_NO_CALL = -1

_libc = ctypes.CDLL(None, use_errno=True)
_ptrace = _libc.ptrace
_ptrace.restype = ctypes.c_long
_ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


def returns(tid: int, calls: tuple[int, ...], result: int) -> bool:
    """Let one of these system calls, in which a thread sleeps, return this result; False if it does
    not sleep there."""
    if _ptrace(_SEIZE, tid, None, None) == -1:
        return False
    signal = done = 0
    if _ptrace(_INTERRUPT, tid, None, None) != -1:
        _, status = os.waitpid(tid, _WALL)
        if not os.WIFSTOPPED(status):
            return False
        # A stop without an event is the delivery of a signal, which must still be delivered.
        signal = 0 if status >> 16 else os.WSTOPSIG(status)
        if _peek(tid, _CALL) in calls and _peek(tid, _RESULT) in _INTERRUPTED:
            _poke(tid, _RESULT, result)
            _poke(tid, _CALL, _NO_CALL)
            done = 1
    with suppress(OSError):
        _ptrace(_DETACH, tid, None, signal)
    return bool(done)


def _peek(tid: int, place: int) -> int:
    return int(_ptrace(_PEEK, tid, place, None))


def _poke(tid: int, place: int, value: int) -> None:
    _ptrace(_POKE, tid, place, ctypes.c_void_p(value))
