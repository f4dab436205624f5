"""tooz, Redis driver: `acquired` stays True when another client has the lock.

Run with tooz 9.1.0, redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install tooz==9.1.0 redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

from tooz import coordination

from frame.processes import wait_for
from frame.redis_server import redis_server


def show(port):
    url = f"redis://127.0.0.1:{port}?lock_timeout=1"
    first = coordination.get_coordinator(url, b"first")
    second = coordination.get_coordinator(url, b"second")
    first.start()
    second.start()
    mine, other = first.get_lock(b"job"), second.get_lock(b"job")
    if not mine.acquire(blocking=False):
        raise RuntimeError("the lock was not free at the start")
    # No heartbeat for longer than lock_timeout: a paused process, a blocked event loop.
    wait_for(lambda: other.acquire(blocking=False), "the lock does not expire", 20)
    both = mine.acquired and other.acquired
    assert not both, "the second client holds the lock, and `acquired` of the first is still True"


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
