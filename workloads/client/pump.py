"""Runs a worker's program on its node and hands its output over in chunks.

    python -m fencepost.workloads.client.pump PROGRAM...

The program writes to a file in memory instead of a pipe that leads out of the node. Its output is
then safe with the kernel, whatever happens to the program. And a write wakes no process, while a
pipe would wake four between here and the harness for every line: that cost more than the lock's own
work. A file on a disk cost some 5 us per op. The program itself does not notice, and speaks its
line protocol on standard input and output.

Only the end of an elector's program ends its threads and connections (docs/protocol.md,
"Electors"). A program that cannot execute itself again leaves its state in the file that SUCCESSION
names, and ends with the exit code LEAVES. Then the pump starts it again.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time

from fencepost.workloads.client.spool import Spool
from fencepost.workloads.client.succession_file import SUCCESSION

# How long an event may wait here: short when a scripted step waits for the one before, longer under
# load, because the cost is per trip.
QUIET_S = 0.004
BUSY_S = 0.05
_BUSY = 2048
LEAVES = 75


def over(code: int) -> bytes:
    """The last line: all output of the program was handed over.

    Without it, output may be missing.

    `code` is the program's exit code; if a signal ended it, the signal's negative number.
    """
    return b'{"control":"over","code":%d}\n' % code


def main(command: list[str]) -> int:
    spool = Spool()
    program = _Program(command, spool.fd)
    os.set_blocking(1, False)
    try:
        _pump(spool, program)
    except BrokenPipeError:
        program.kill()  # the harness is gone, so nothing reads the output
    return program.wait()


class _Program:
    """The program, and those that succeed it."""

    def __init__(self, command: list[str], out: int) -> None:
        self._command, self._out = command, out
        self._left = os.memfd_create("fencepost-succession")
        self._running = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = os.environ | {SUCCESSION: f"/proc/{os.getpid()}/fd/{self._left}"}
        return subprocess.Popen(self._command, stdout=self._out, env=environment)

    def code(self) -> int | None:
        """Return its exit code; None while it runs, or its successor does."""
        code = self._running.poll()
        if code == LEAVES and os.fstat(self._left).st_size:
            self._running = self._start()
            return None
        return code

    def kill(self) -> None:
        self._running.kill()

    def wait(self) -> int:
        return self._running.wait()


def _pump(spool: Spool, program: _Program) -> None:
    last = b"\n"
    while True:
        # Checked before the read, which then surely has all output of a dead program.
        code = program.code()
        chunk = spool.read()
        _write(chunk, spool)
        last = chunk[-1:] or last
        if code is not None and not chunk:
            _write(over(code) if last == b"\n" else b"\n" + over(code), spool)
            return
        if chunk:
            spool.done()
        if code is None:
            time.sleep(BUSY_S if len(chunk) > _BUSY else QUIET_S)


def _write(chunk: bytes, spool: Spool) -> None:
    """Write it out, however long that takes, and handle input meanwhile."""
    room = select.poll()
    room.register(1, select.POLLOUT)
    view = memoryview(chunk)
    while view:
        spool.trim()
        if room.poll(BUSY_S * 1000):
            try:
                view = view[os.write(1, view) :]
            except BlockingIOError:
                continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
