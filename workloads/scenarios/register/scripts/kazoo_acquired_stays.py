"""kazoo, Lock: after the end of its session a lock is still acquired, and release() returns True.

Run with kazoo 2.11.0, ZooKeeper 3.8.0, Python 3.11.
Needs: pip install kazoo==2.11.0; Debian's zookeeper (java, no service).
JARS is the folder of its jars, /usr/share/java unless set.
CONTROL=1 does not pause the holder, and no other client acquires the lock.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import signal
import subprocess
import sys
import threading

from kazoo.client import KazooClient, KazooState

from frame.zookeeper_server import zookeeper_server

PAUSE = not os.environ.get("CONTROL")


def connect(port, session_s):
    client = KazooClient(f"127.0.0.1:{port}", timeout=session_s)
    client.start(timeout=600)
    return client


def hold(port):
    """The holder, a process: acquires, waits for a line and for the end of its session."""
    client, lost = connect(port, 4), threading.Event()
    client.add_listener(lambda state: state == KazooState.LOST and lost.set())
    lock = client.Lock("/job")
    lock.acquire()
    print("acquired", flush=True)
    sys.stdin.readline()
    if PAUSE and not lost.wait(60):
        raise RuntimeError("the session did not end")
    print(lock.is_acquired, lock.release(), flush=True)


def show(port):
    second = connect(port, 100)
    holder = subprocess.Popen(
        [sys.executable, __file__, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        if holder.stdout.readline().strip() != "acquired":
            raise RuntimeError("the holder did not acquire the lock")
        if PAUSE:
            holder.send_signal(signal.SIGSTOP)
            second.Lock("/job").acquire(timeout=60)
            holder.send_signal(signal.SIGCONT)
        holder.stdin.write("\n")
        holder.stdin.flush()
        acquired, released = holder.stdout.readline().split()
        if not PAUSE and (acquired, released) != ("True", "True"):
            raise RuntimeError("the lock was lost without a pause")
        assert not PAUSE or "True" not in (acquired, released), (
            f"another client has acquired the lock; `is_acquired` of the first is {acquired} after "
            f"its session has ended, and its release() returns {released}"
        )
    finally:
        holder.kill()
        holder.wait()
        second.stop()
        second.close()


if __name__ == "__main__":
    if sys.argv[1:]:
        hold(int(sys.argv[1]))
    else:
        with zookeeper_server() as server:
            show(server.port)
