"""redis-py, Lock: after a network error in release() its owner cannot release the lock.

Run with redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import redis

from frame.release_forgets import show_release

if __name__ == "__main__":
    show_release(redis, redis.Redis)
