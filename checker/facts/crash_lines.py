"""The lines by which a server logs that it crashed, or is crashing.

Each kind of server has those of its product (`Kind.crash_lines`, node/kind.py). Those of the kernel
and of the runtimes of languages are here, and are searched for in the log of any server.

A line is listed only if the server ends by it, or loses a process. Many that sound like it are not:
Java programs print the name of OutOfMemoryError at their start, among their options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_OF_ANY_SERVER = (
    # Go: runtime/panic.go, runtime/signal_unix.go.
    r"^(?:panic|fatal error|runtime error): ",
    r"^unexpected fault address|^SIG(?:SEGV|BUS|ILL|FPE|ABRT): ",
    # The JVM. Its options, which it prints at the start, contain the name of the error as well.
    r"(?<![=:])java\.lang\.OutOfMemoryError",
    r"A fatal error has been detected by the Java Runtime",
    r"insufficient memory for the Java Runtime|Error occurred during initialization of VM",
    # The kernel.
    r"[Oo]ut of memory: Killed process|segfault at ",
)

FULL = re.compile(r"no space left on device", re.IGNORECASE)
"""The reason for a crash that a full disk explains."""


@dataclass(frozen=True)
class CrashLines:
    """`every` matches the lines by which a server crashes. `of_loss` matches those that a fault
    explains by which the server lost a process or its data: the process was killed, its successor
    finds its port taken or its files gone."""

    every: re.Pattern[str]
    of_loss: re.Pattern[str]


def crash_lines(crashes: Iterable[str] = (), losses: Iterable[str] = ()) -> CrashLines:
    """Return these patterns of crashes and of losses, and those of any server."""
    losses = tuple(losses)
    every = (*_OF_ANY_SERVER, *crashes, *losses)
    return CrashLines(re.compile("|".join(every)), re.compile("|".join(losses) or r"(?!)"))
