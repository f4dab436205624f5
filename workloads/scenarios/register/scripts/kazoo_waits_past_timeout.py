"""kazoo, Lock: acquire(timeout=1) waits without a limit while there is no connection.

Run with kazoo 2.11.0, ZooKeeper 3.8.0, Python 3.11.
Needs: pip install kazoo==2.11.0; Debian's zookeeper (java, no service).
CONTROL=1 does not pause the server.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import signal
import threading
import time

from kazoo.client import KazooClient

from frame.zookeeper_server import zookeeper_server


def connect(port):
    client = KazooClient(f"127.0.0.1:{port}", timeout=100)
    client.start(timeout=600)
    return client


def show(port, server):
    holder, second = connect(port), connect(port)
    holder.Lock("/job").acquire()
    ended = threading.Event()

    def acquire():
        try:
            second.Lock("/job").acquire(timeout=1)
        except Exception:
            pass  # LockTimeout, or that the connection is lost: the caller learns of it
        ended.set()

    if not os.environ.get("CONTROL"):
        server.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    threading.Thread(target=acquire, daemon=True).start()
    ended.wait(100 if os.environ.get("CONTROL") else 15)
    took = time.monotonic() - begun
    assert ended.is_set(), f"acquire(timeout=1) had not returned after {took:.0f} s"


if __name__ == "__main__":
    with zookeeper_server() as server:
        show(server.port, server.process)
