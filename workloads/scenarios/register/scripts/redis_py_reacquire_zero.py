"""redis-py, Lock(timeout=0): reacquire() deletes the lock and returns True.

Run with redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import redis

from frame.redis_server import redis_server


def show(port):
    client = redis.Redis(port=port)
    first, second = client.lock("job", timeout=0), client.lock("job", timeout=0)
    if not first.acquire(blocking=False):
        raise RuntimeError("the lock was not free at the start")
    try:
        said = f"returned {first.reacquire()}"
    except redis.exceptions.LockError as error:
        said = f"raised {error}"
    stolen = second.acquire(blocking=False)
    assert not stolen, f"reacquire() {said}, and another client acquired the lock"


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
