"""Starts a program under the skew that `vdso set` left for this node, if any.

    launch PROGRAM...

The program replaces this one, and so keeps its pid. It sees the skewed clocks from its first
instruction on, like one that is restarted on a machine whose clock is wrong. Seeing the right time
first would make the restart a second jump. Shells on the way to a server are skewed too, and
followed to the program that they become.
"""

from __future__ import annotations

import os
import sys
import time
from typing import NoReturn

from fencepost.node import vdso
from fencepost.node.patch import Table
from fencepost.node.tracing import after_exec, seize_for_exec

# A JVM has loaded its libraries some 30 ms after its start, later on a busy machine.
_LIBRARIES_S = 5.0


def command(program: list[str]) -> NoReturn:
    """Exec the program under the stored skew; a separate process applies it and exits."""
    if (entries := vdso.read_table()) is not None:
        us = os.getpid()
        ready, tell = os.pipe()
        helper = os.fork()
        if helper == 0:
            # Its parent exits at once, so that the server has no unknown child.
            if os.fork() == 0:
                os._exit(_follow(us, entries, ready, tell))
            os._exit(0)
        os.waitpid(helper, 0)
        os.close(tell)
        os.read(ready, 1)
        os.close(ready)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        # The exit codes of a shell: not found, or not executable.
        print(f"{program[0]} cannot be started: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _follow(pid: int, entries: Table, ready: int, tell: int) -> int:
    seize_for_exec(pid)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nowhere, fd)
    os.write(tell, b".")
    os.closerange(3, 256)
    for _ in after_exec(pid):
        with vdso.alone():
            if vdso.read_table() == entries:
                vdso.skew(pid, entries, still=True)
    _wait_for_libraries(pid, entries)
    return 0


def _wait_for_libraries(pid: int, entries: Table) -> None:
    """Apply the skew again whenever a library with timed waits is loaded (waits.py)."""
    end = time.monotonic() + _LIBRARIES_S
    seen: set[int] = set()
    try:
        while time.monotonic() < end:
            with vdso.alone():
                if vdso.read_table() != entries:
                    return
                if not (there := vdso.elsewhere(pid)) <= seen:
                    vdso.skew(pid, entries)
                    seen |= there
            time.sleep(0.005)
    except OSError:
        return  # the program has ended
