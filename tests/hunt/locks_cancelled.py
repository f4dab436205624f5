"""User locks of asyncio whose calls are cancelled: each broken one has a sound twin."""

from __future__ import annotations

import asyncio
import uuid

import redis.asyncio

from fencepost import Failed

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class Leased:
    """Sound: its lease ends the grant of a cancelled call."""

    leases = True

    def __init__(self, servers):
        host, port = servers[0]
        self.client = redis.asyncio.Redis(host=host, port=port, socket_timeout=0.5, retry=None)
        self.values = {}

    async def acquire(self, name, ttl):
        self.values[name] = value = uuid.uuid4().hex
        px = int(ttl * 1000) if self.leases else None
        return bool(await self.client.set(name, value, nx=True, px=px))

    async def release(self, name):
        return await self.give_back(name, self.values[name])

    async def give_back(self, name, value):
        return await self.client.eval(RELEASE, 1, name, value) == 1

    async def close(self):
        await self.client.aclose()


class Extends(Leased):
    """Sound: an extend that was cancelled may have extended the lease, or not."""

    async def extend(self, name, ttl):
        script = RELEASE.replace("'del', KEYS[1]", "'pexpire', KEYS[1], ARGV[2]")
        return await self.client.eval(script, 1, name, self.values[name], int(ttl * 1000)) == 1


class Leaves(Leased):
    """Without a lease: a cancelled call leaves its key for ever."""

    leases = False


class GivesBack(Leased):
    """Sound without a lease: a cancelled call is completed in the background, and `close` waits for
    that."""

    leases = False

    def __init__(self, servers):
        super().__init__(servers)
        self.background = set()

    async def acquire(self, name, ttl):
        asking = self.start(super().acquire(name, ttl))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            self.start(self.undo(asking, name, self.values[name]))
            raise

    async def undo(self, asking, name, value):
        if await asking:
            await self.give_back(name, value)

    async def release(self, name):
        return await asyncio.shield(self.start(super().release(name)))

    def start(self, work):
        task = asyncio.ensure_future(work)
        self.background.add(task)
        task.add_done_callback(self.background.discard)
        return task

    async def close(self):
        while self.background:
            await asyncio.wait(self.background)
        await super().close()


class DropsInClose(GivesBack):
    """Its `close` does not wait for its tasks: sound for a client that keeps its lock."""

    async def close(self):
        for task in self.background:
            task.cancel()
        await self.client.aclose()


class GivesBackAtOnce(GivesBack):
    """The same with a lease, and in the cancelled call itself."""

    leases = True

    async def acquire(self, name, ttl):
        try:
            return await Leased.acquire(self, name, ttl)
        except asyncio.CancelledError:
            await asyncio.shield(self.start(self.give_back(name, self.values[name])))
            raise


class SaysSo(Leased):
    """Sound: it says of a cancelled call that it had no effect, once that is certain."""

    async def acquire(self, name, ttl):
        try:
            return await super().acquire(name, ttl)
        except asyncio.CancelledError:
            await self.give_back(name, self.values[name])
            raise Failed("it was given back") from None


class Swallows(Leased):
    """Takes a cancelled acquire for a grant."""

    async def acquire(self, name, ttl):
        try:
            return await super().acquire(name, ttl)
        except asyncio.CancelledError:
            return True
