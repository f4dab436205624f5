"""kazoo, Lock: acquire(blocking=False) leaves its contender behind, and the lock is stuck.

Run with kazoo 2.11.0, ZooKeeper 3.8.0, Python 3.11.
Needs: pip install kazoo==2.11.0; Debian's zookeeper (java, no service).
CONTROL=1 does not cut the connection.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import struct
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

from frame.proxy import proxy
from frame.zookeeper_server import zookeeper_server

DELETE = 2  # the type of a request, after its length and its number
CUT = not os.environ.get("CONTROL")


def is_delete(data):
    return len(data) >= 12 and struct.unpack(">i", data[8:12])[0] == DELETE


def connect(port):
    client = KazooClient(f"127.0.0.1:{port}", timeout=100)
    client.start(timeout=600)
    return client


def show(port):
    lost = threading.Event()

    def request(data):
        """Lose the first delete and end its connection; the next one passes."""
        if CUT and is_delete(data) and not lost.is_set():
            lost.set()
            raise ConnectionError("cut")

    holder, third = connect(port), connect(port)
    second = connect(proxy(port, request))
    lock, session = holder.Lock("/job"), second.client_id[0]
    lock.acquire()
    if second.Lock("/job").acquire(blocking=False):
        raise RuntimeError("two clients were granted the lock")
    second.retry(second.exists, "/job")  # waits until the second client is connected again
    if second.client_id[0] != session:
        raise RuntimeError("the session of the second client ended: the cut was too long")
    lock.release()
    try:
        free = third.Lock("/job").acquire(timeout=20 if CUT else 300)
    except LockTimeout:
        free = False
    left = third.get_children("/job")
    for client in (holder, second, third):
        client.stop()
        client.close()
    assert free, (
        f"no client holds the lock, and none can acquire it: {left} is left of the second client, "
        "whose acquire(blocking=False) returned False, and stays as long as its session"
    )


if __name__ == "__main__":
    with zookeeper_server() as server:
        show(server.port)
