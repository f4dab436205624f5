"""redis-py, asyncio Lock: acquire cancelled while the answer travels leaves the key.

Run with redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import asyncio
import time

import redis.asyncio

from frame.proxy import proxy
from frame.redis_server import redis_server


async def show(port):
    delay_s = 0.0
    client = redis.asyncio.Redis(port=proxy(port, answer=lambda _: time.sleep(delay_s)))
    direct = redis.asyncio.Redis(port=port)
    await client.ping()
    lock = client.lock("job")
    delay_s = 1.0
    attempt = asyncio.create_task(lock.acquire())
    while not await direct.exists("job"):  # SET has reached the server, its answer travels
        await asyncio.sleep(0.01)
    attempt.cancel()
    try:
        await attempt
        raise RuntimeError("acquire ended before it was cancelled")
    except asyncio.CancelledError:
        pass
    delay_s = 0.0
    owned = await lock.owned()
    await asyncio.sleep(2)  # time for the library to clean up
    left, ttl_s = await direct.exists("job"), await direct.ttl("job")
    await client.aclose()
    await direct.aclose()
    assert not left, (
        f"acquire was cancelled and owned() is {owned}, but the key is still there with TTL {ttl_s} "
        "(-1: for ever): no client can acquire the lock"
    )


if __name__ == "__main__":
    with redis_server() as server:
        asyncio.run(show(server.port))
