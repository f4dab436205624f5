"""Sound locks of asyncio on one Redis server, which other files change.

A lease; one that a task renews.
"""

import asyncio
import uuid

import redis.asyncio
from _lease import EXTEND, RELEASE


class Lease:
    def __init__(self, servers):
        host, port = servers[0]
        self.client = redis.asyncio.Redis(
            host=host, port=port, socket_timeout=0.5, retry=None, decode_responses=True
        )

    async def acquire(self, name, ttl):
        self.owner = uuid.uuid4().hex  # a late request of a cancelled call ends no later hold
        return bool(await self.client.set(name, self.owner, nx=True, px=int(ttl * 1000)))

    async def release(self, name):
        return await self.delete(name, self.owner)

    async def delete(self, name, owner):
        if await self.client.get(name) != owner:
            return False
        return await self.client.eval(RELEASE, 1, name, owner) == 1

    async def close(self):
        await self.client.aclose()


class Renewed(Lease):
    """The client counts on the first lease alone."""

    async def acquire(self, name, ttl):
        self.hold = await self.take(name, ttl)
        return self.hold is not None

    async def take(self, name, ttl):
        """Return the owner's value and the task that renews its lease; None if it is held."""
        owner = uuid.uuid4().hex
        if not await self.client.set(name, owner, nx=True, px=int(ttl * 1000)):
            return None
        return owner, asyncio.create_task(self.renew(name, owner, ttl))

    async def renew(self, name, owner, ttl):
        while True:
            await asyncio.sleep(ttl / 3)
            try:
                if await self.client.eval(EXTEND, 1, name, owner, int(ttl * 1000)) == 0:
                    return
            except redis.RedisError:
                continue

    async def release(self, name):
        return await self.give_back(name, *self.hold)

    async def give_back(self, name, owner, renewal):
        renewal.cancel()
        return await self.delete(name, owner)
