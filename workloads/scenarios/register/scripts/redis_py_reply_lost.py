"""redis-py, Lock: if the answer to SET is lost, acquire returns False and the lock is stuck.

Run with redis-py 6.0.0 to 8.1.0 and Redis 7.0.15, Python 3.11. 5.3.1 raises.
Needs: pip install redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import threading

import redis

from frame.proxy import proxy
from frame.redis_server import redis_server


def show(port):
    asked, lost = threading.Event(), threading.Event()

    def request(data):
        if b"NX" in data:
            asked.set()

    def answer(data):
        if asked.is_set() and not lost.is_set():
            lost.set()
            raise ConnectionError("the answer is lost")

    client, direct = redis.Redis(port=proxy(port, request, answer)), redis.Redis(port=port)
    try:
        acquired = client.lock("job").acquire(blocking=False)
    except redis.ConnectionError:
        return  # redis-py before 6 does not try again: the caller knows that the outcome is unknown
    left = direct.get("job")
    assert acquired or not left, (
        f"acquire() returned {acquired}, but its own key {left!r} is on the server, with TTL "
        f"{direct.ttl('job')} (-1: for ever): no client holds the lock, and none can acquire it"
    )


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
