"""sherlock, RedisLock(expire=1.5): acquire() raises, and its key stays for ever.

Run with sherlock 0.4.1, redis-py 8.1.0, Redis 7.0.15, Python 3.11.
Needs: pip install sherlock==0.4.1 redis; redis-server in the PATH.
CONTROL=1 uses expire=2.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import time

import redis
from sherlock import RedisLock

from frame.redis_server import redis_server

EXPIRE = 2 if os.environ.get("CONTROL") else 1.5


def show(port):
    client = redis.Redis(port=port)
    first = RedisLock("job", client=client, expire=EXPIRE)
    try:
        said = f"returned {first.acquire(blocking=False)}"
    except redis.exceptions.ResponseError as error:
        said = f"raised {error}"
    time.sleep(2 * EXPIRE)
    free = RedisLock("job", client=client, expire=60).acquire(blocking=False)
    left = client.ttl("job")
    assert free, f"acquire() of the first client {said}; its key stays, with a TTL of {left}"


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
