"""dramatiq, ConcurrentRateLimiter(limit=1): a release after the ttl frees another client's lock.

Run with dramatiq 2.2.1, redis-py 8.1.0, Redis 7.0.15, Python 3.11.
Needs: pip install dramatiq==2.2.1 redis; redis-server in the PATH.
CONTROL=1 leaves the block only after the second client has left its own.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import time
from contextlib import ExitStack

import redis
from dramatiq.rate_limits import ConcurrentRateLimiter
from dramatiq.rate_limits.backends import RedisBackend

from frame.redis_server import redis_server

TTL_MS = 2000


def show(port):
    backend = RedisBackend(client=redis.Redis(port=port))
    mutex = ConcurrentRateLimiter(backend, "job", limit=1, ttl=TTL_MS)
    with ExitStack() as first, ExitStack() as second, ExitStack() as third:
        first.enter_context(mutex.acquire())
        while not second.enter_context(mutex.acquire(raise_on_failure=False)):
            time.sleep(0.01)  # until the ttl has passed
        begun = time.monotonic()
        if not os.environ.get("CONTROL"):
            first.close()  # the first client is late
        both = third.enter_context(mutex.acquire(raise_on_failure=False))
        in_time = time.monotonic() < begun + TTL_MS / 1000
    assert not (both and in_time), (
        "the third client entered its block while the second one was in its own, within its ttl"
    )


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
