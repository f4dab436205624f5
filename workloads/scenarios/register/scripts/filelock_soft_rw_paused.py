"""filelock, SoftReadWriteLock: a writer paused past the stale threshold still believes it holds.

Run with filelock 3.28.0 to 4.2.0, Python 3.11.
Needs: pip install filelock==4.2.0. CONTROL=1 pauses for less than the threshold.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

from filelock import SoftReadWriteLock, Timeout

STALE_S = 2
PAUSE_S = 0.5 if os.environ.get("CONTROL") else 20
HOLDER = """
import sys
from filelock import SoftReadWriteLock
lock = SoftReadWriteLock(sys.argv[1], heartbeat_interval=0.5, stale_threshold=float(sys.argv[2]))
lock.acquire_write()
print("acquired", flush=True)
sys.stdin.readline()
try:
    lock.acquire_write(timeout=1)
except RuntimeError as error:
    print("refused:", error, flush=True)
else:
    print("holds", flush=True)
"""


def show(path):
    command = [sys.executable, "-c", HOLDER, path, str(STALE_S)]
    holder = subprocess.Popen(command, stdin=-1, stdout=-1, text=True)
    second = SoftReadWriteLock(path, heartbeat_interval=0.5, stale_threshold=STALE_S)
    try:
        if holder.stdout.readline() != "acquired\n":
            raise RuntimeError("the first writer did not acquire the lock")
        time.sleep(1)
        holder.send_signal(signal.SIGSTOP)
        try:
            second.acquire_write(timeout=PAUSE_S)
            granted = True
        except Timeout:
            granted = False
        holder.send_signal(signal.SIGCONT)
        time.sleep(2)  # four heartbeats of the first
        said, _ = holder.communicate("\n", timeout=30)
        if granted:
            second.release()
    finally:
        holder.kill()
        holder.wait()
    assert not (granted and said == "holds\n"), (
        "two writers hold the lock: the second evicted the first during its pause, and 2 s after "
        "the pause acquire_write() of the first counts one more level of its hold"
    )


def main():
    with tempfile.TemporaryDirectory() as folder:
        show(f"{folder}/job.lock")


if __name__ == "__main__":
    main()
