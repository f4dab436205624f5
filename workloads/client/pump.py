"""Runs a worker's program on its node and hands its output over in chunks.

    python -m fencepost.workloads.client.pump PROGRAM...

The program writes to a file in memory instead of to a pipe that leads out of the node. What it
wrote is then safe with the kernel, whatever happens to the program; and a write wakes nobody up,
where a pipe would wake four processes between here and the harness, for every line: that cost
more than the lock's own work. A file on a disk cost some 5 us an op. The program itself knows
nothing of it and speaks its line protocol on standard input and output.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import subprocess
import sys
import time

# How long an event may lie here: not long where a scripted step waits for the one before, and
# longer where there is much to carry, since what carrying costs is the number of trips.
QUIET_S = 0.004
BUSY_S = 0.05
_BUSY = 2048
_CHUNK = 1 << 20
# FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE, of linux/falloc.h.
_PUNCH_HOLE = 1 | 2


def main(command: list[str]) -> int:
    spool = os.memfd_create("fencepost-spool")
    fcntl.fcntl(spool, fcntl.F_SETFL, os.O_APPEND)
    program = subprocess.Popen(command, stdout=spool)
    try:
        _pump(spool, program)
    except BrokenPipeError:
        program.kill()  # nobody listens any more: the harness is gone
    return program.wait()


def _pump(spool: int, program: subprocess.Popen[bytes]) -> None:
    allocate = ctypes.CDLL(None).fallocate
    allocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    place = 0
    while True:
        # Asked before the read: what a dead program wrote is then surely in it.
        over = program.poll() is not None
        # By place: the program's own writes go by the position that this descriptor shares.
        chunk = os.pread(spool, _CHUNK, place)
        view = memoryview(chunk)
        while view:
            view = view[os.write(1, view) :]
        if over and not chunk:
            return
        if chunk:
            # What is under way, and no more, takes memory.
            place += len(chunk)
            allocate(spool, _PUNCH_HOLE, 0, place)
        if not over:
            time.sleep(BUSY_S if len(chunk) > _BUSY else QUIET_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
