"""Refuses calls that would leave the simulation: of processes, and of signals.

Each error names what to use instead.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any

from fencepost.hunt.intercept.context import here

_PROCESSES = "other processes are not simulated: use threads"
_ENDS = "a simulated process does not end, and gets no signal: raise an exception"
_TIMERS = "signals are not simulated: use threading.Timer, or a timeout"
_HANDLERS = "signals are not simulated: leave their handlers to the program that uses the lock"

_REFUSED: tuple[tuple[Any, str, str], ...] = (
    (os, "fork", _PROCESSES), (os, "forkpty", _PROCESSES), (os, "system", _PROCESSES),
    (os, "popen", _PROCESSES), (os, "posix_spawn", _PROCESSES), (os, "posix_spawnp", _PROCESSES),
    (subprocess.Popen, "__init__", _PROCESSES), (BaseProcess, "start", _PROCESSES),
    (ProcessPoolExecutor, "__init__", _PROCESSES), (connection, "Pipe", _PROCESSES),
    (os, "_exit", _ENDS), (os, "abort", _ENDS), (os, "kill", _ENDS),
    (signal, "alarm", _TIMERS), (signal, "setitimer", _TIMERS),
    (signal, "signal", _HANDLERS), (signal, "set_wakeup_fd", _HANDLERS),
    (signal, "siginterrupt", _HANDLERS),
)  # fmt: skip


def places() -> Iterator[tuple[Any, str, Any]]:
    """Yield each owner, the name to replace in it, and the replacement (patches.py)."""
    for owner, name, why in _REFUSED:
        if hasattr(owner, name):
            whole = f"{getattr(owner, '__module__', '')}.{owner.__name__}".lstrip(".")
            named = whole if name == "__init__" else f"{whole}.{name}"
            yield owner, name, _refuse(getattr(owner, name), named, why)


def _refuse(real: Callable[..., Any], name: str, why: str) -> Callable[..., Any]:
    def refused(*args: Any, **more: Any) -> Any:
        place = here()
        if place is None:
            return real(*args, **more)
        raise place.unknown(f"it calls {name}, and {why}")

    return refused
