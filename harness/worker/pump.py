"""Runs a worker's program on its node and hands its output over in chunks.

    python -m harness.worker.pump PROGRAM...

The program writes to a file instead of to a pipe that leads out of the node. What it wrote is
then safe with the kernel, whatever happens to the program; and a write wakes nobody up, where
a pipe would wake four processes between here and the harness, for every line: that cost more
than the lock's own work. The program itself knows nothing of it and speaks its line protocol on
standard input and output.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

# How long an event may lie here: not long where a scripted step waits for the one before, and
# longer where there is much to carry, since what carrying costs is the number of trips.
QUIET_S = 0.004
BUSY_S = 0.05
_BUSY = 2048
_CHUNK = 1 << 20


def main(command: list[str]) -> int:
    with tempfile.NamedTemporaryFile(prefix="fencepost-spool-") as spool:
        writer = os.open(spool.name, os.O_WRONLY | os.O_APPEND)
        program = subprocess.Popen(command, stdout=writer)
        os.close(writer)
        try:
            _pump(spool.fileno(), program)
        except BrokenPipeError:
            program.kill()  # nobody listens any more: the harness is gone
    return program.wait()


def _pump(spool: int, program: subprocess.Popen[bytes]) -> None:
    while True:
        # Asked before the read: what a dead program wrote is then surely in it.
        over = program.poll() is not None
        chunk = os.read(spool, _CHUNK)
        view = memoryview(chunk)
        while view:
            view = view[os.write(1, view) :]
        if over and not chunk:
            return
        if not over:
            time.sleep(BUSY_S if len(chunk) > _BUSY else QUIET_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
