"""aiocache, RedLock: a client of another process does not wait for the holder.

Run with aiocache 0.12.3, redis-py 8.1.0, Redis 7.0.15, Python 3.11.
Needs: pip install aiocache==0.12.3 redis; redis-server in the PATH.
CONTROL=1 has both clients in one process.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import asyncio
import os
import subprocess
import sys
import time

from aiocache import Cache
from aiocache.lock import RedLock

from frame.redis_server import redis_server

LEASE_S = 5


async def enters(port):
    """Return how long (s) a client waits at the lock."""
    cache, begun = Cache(Cache.REDIS, endpoint="127.0.0.1", port=port), time.monotonic()
    async with RedLock(cache, "job", lease=LEASE_S):
        waited_s = time.monotonic() - begun
    await cache.close()
    return waited_s


async def show(port):
    cache = Cache(Cache.REDIS, endpoint="127.0.0.1", port=port)
    async with RedLock(cache, "job", lease=LEASE_S):
        if os.environ.get("CONTROL"):
            waited_s = await enters(port)
        else:
            other = [sys.executable, __file__, str(port)]
            said = await asyncio.to_thread(subprocess.check_output, other, timeout=300)
            waited_s = float(said)
    await cache.close()
    assert waited_s > LEASE_S / 2, (
        f"the second client entered its block after {waited_s:.3f} s, while the first one was in "
        f"its own, with a lease of {LEASE_S} s"
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        print(asyncio.run(enters(int(sys.argv[1]))))
    else:
        with redis_server() as server:
            asyncio.run(show(server.port))
