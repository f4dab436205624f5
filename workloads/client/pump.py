"""Runs a worker's program on its node and hands its output over in chunks.

    python -m fencepost.workloads.client.pump PROGRAM...

The program writes to a file in memory instead of a pipe that leads out of the node. Its output is
then safe with the kernel, whatever happens to the program. And a write wakes no process, while a
pipe would wake four between here and the harness for every line: that cost more than the lock's own
work. A file on a disk cost some 5 us per op. The program itself does not notice, and speaks its
line protocol on standard input and output.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time

from fencepost.workloads.client.spool import Spool

# How long an event may wait here: short when a scripted step waits for the one before, longer under
# load, because the cost is per trip.
QUIET_S = 0.004
BUSY_S = 0.05
_BUSY = 2048


def over(code: int) -> bytes:
    """The last line: all output of the program was handed over.

    Without it, output may be missing.

    `code` is the program's exit code; if a signal ended it, the signal's negative number.
    """
    return b'{"control":"over","code":%d}\n' % code


def main(command: list[str]) -> int:
    spool = Spool()
    program = subprocess.Popen(command, stdout=spool.fd)
    os.set_blocking(1, False)
    try:
        _pump(spool, program)
    except BrokenPipeError:
        program.kill()  # the harness is gone, so nothing reads the output
    return program.wait()


def _pump(spool: Spool, program: subprocess.Popen[bytes]) -> None:
    last = b"\n"
    while True:
        # Checked before the read, which then surely has all output of a dead program.
        ended = program.poll() is not None
        chunk = spool.read()
        _write(chunk, spool)
        last = chunk[-1:] or last
        if ended and not chunk:
            last_line = over(program.returncode)
            _write(last_line if last == b"\n" else b"\n" + last_line, spool)
            return
        if chunk:
            spool.done()
        if not ended:
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
