"""filelock, SoftReadWriteLock: a client whose clock is ahead evicts a writer that is alive.

Run with filelock 3.28.0 to 3.32.7, Python 3.11.
Needs: pip install filelock==3.32.7. CONTROL=1 leaves the clock as it is.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import subprocess
import sys
import tempfile
import time

from filelock import SoftReadWriteLock

STALE_S = 20
AHEAD_S = 0 if os.environ.get("CONTROL") else 60
# The clock of another host: everything in this process that asks for the time sees it.
CONTENDER = """
import sys, time
exact, ahead = time.time, float(sys.argv[2])
time.time = lambda: exact() + ahead
from filelock import SoftReadWriteLock, Timeout
lock = SoftReadWriteLock(sys.argv[1], heartbeat_interval=0.5, stale_threshold=float(sys.argv[3]))
try:
    lock.acquire_write(timeout=3)
except Timeout:
    print("refused", flush=True)
else:
    print("acquired", flush=True)
sys.stdin.readline()
"""


def show(path):
    first = SoftReadWriteLock(path, heartbeat_interval=0.5, stale_threshold=STALE_S)
    first.acquire_write()
    time.sleep(1)
    command = [sys.executable, "-c", CONTENDER, path, str(AHEAD_S), str(STALE_S)]
    second = subprocess.Popen(command, stdin=-1, stdout=-1, text=True)
    try:
        said = second.stdout.readline()
        if said not in ("refused\n", "acquired\n"):
            raise RuntimeError("the second client ended")
        time.sleep(2)  # four heartbeats of the first
        try:
            first.acquire_write(timeout=1)
            holds = True
        except RuntimeError:
            holds = False
    finally:
        second.kill()
        second.wait()
    assert not (said == "acquired\n" and holds), (
        "two writers hold the lock: the first refreshed its marker every 0.5 s of "
        f"{STALE_S} s, and a client whose clock is {AHEAD_S} s ahead evicted it"
    )


def main():
    with tempfile.TemporaryDirectory() as folder:
        show(f"{folder}/job.lock")


if __name__ == "__main__":
    main()
