"""sherlock, RedisLock(expire=None): acquire() deletes the key that it has set.

Run with sherlock 0.4.1, redis-py 8.1.0, Redis 7.0.15, Python 3.11.
Needs: pip install sherlock==0.4.1 redis; redis-server in the PATH.
CONTROL=1 uses expire=600.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os

import redis
from sherlock import RedisLock

from frame.redis_server import redis_server

EXPIRE = 600 if os.environ.get("CONTROL") else None


def show(port):
    client = redis.Redis(port=port)
    first, second = (RedisLock("job", client=client, expire=EXPIRE) for _ in range(2))
    if not first.acquire(blocking=False):
        raise RuntimeError("the lock was not free at the start")
    both = second.acquire(blocking=False)
    assert not both, "the first client has the lock, without an expiry, and so has the second one"


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
