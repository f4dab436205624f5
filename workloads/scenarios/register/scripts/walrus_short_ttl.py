"""walrus, Lock: with a ttl below one second a waiter sleeps for ever after the holder's death.

Run with walrus 0.9.8, redis-py 8.1.0, Redis 7.0.15, Python 3.11.
Needs: pip install walrus==0.9.8 redis; redis-server in the PATH.
CONTROL=1 uses a ttl of one second.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import threading

import walrus

from frame.redis_server import redis_server

TTL_MS = 1000 if os.environ.get("CONTROL") else 500
WAITS_S = 100 if os.environ.get("CONTROL") else 15


def show(port):
    dead, waiter = (walrus.Database(port=port).lock("job", ttl=TTL_MS) for _ in range(2))
    if not dead.acquire(block=False):
        raise RuntimeError("the lock was not free at the start")
    granted = threading.Event()
    # The holder ends without a release; the other one waits for it.
    threading.Thread(target=lambda: waiter.acquire() and granted.set(), daemon=True).start()
    granted.wait(WAITS_S)
    assert granted.is_set(), (
        f"{WAITS_S} s after the lease of {TTL_MS} ms had begun, acquire() of the waiter had not "
        "returned"
    )


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
