"""Runs a worker's program on its node and hands its output over in chunks.

    python -m fencepost.workloads.client.pump PROGRAM...

The program writes to a file in memory instead of to a pipe that leads out of the node. What it
wrote is then safe with the kernel, whatever happens to the program; and a write wakes nobody up,
where a pipe would wake four processes between here and the harness, for every line: that cost
more than the lock's own work. A file on a disk cost some 5 us an op. The program itself knows
nothing of it and speaks its line protocol on standard input and output.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time

from fencepost.workloads.client.spool import Spool

# How long an event may lie here: not long where a scripted step waits for the one before, and
# longer where there is much to carry, since what carrying costs is the number of trips.
QUIET_S = 0.004
BUSY_S = 0.05
_BUSY = 2048


def over(code: int) -> bytes:
    """The last line: all that the program wrote was handed over.

    Whoever does not hear it may have missed some.

    `code` is the program's exit code; of a signal that ended it the number, negative.
    """
    return b'{"control":"over","code":%d}\n' % code


def main(command: list[str]) -> int:
    spool = Spool()
    program = subprocess.Popen(command, stdout=spool.fd)
    os.set_blocking(1, False)
    try:
        _pump(spool, program)
    except BrokenPipeError:
        program.kill()  # nobody listens any more: the harness is gone
    return program.wait()


def _pump(spool: Spool, program: subprocess.Popen[bytes]) -> None:
    last = b"\n"
    while True:
        # Asked before the read: what a dead program wrote is then surely in it.
        ended = program.poll() is not None
        chunk = spool.read()
        _write(chunk, spool)
        last = chunk[-1:] or last
        if ended and not chunk:
            said = over(program.returncode)
            _write(said if last == b"\n" else b"\n" + said, spool)
            return
        if chunk:
            spool.done()
        if not ended:
            time.sleep(BUSY_S if len(chunk) > _BUSY else QUIET_S)


def _write(chunk: bytes, spool: Spool) -> None:
    """Hand it on, however long that takes, and see to what comes meanwhile."""
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
