"""User locks of asyncio for the hunt."""

from __future__ import annotations

import asyncio
import time
import uuid

import redis.asyncio

from fencepost import Grant

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""
EXTEND = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
return 0
"""


class Right:
    """Releases only its own key."""

    def __init__(self, servers):
        host, port = servers[0]
        self.client = redis.asyncio.Redis(host=host, port=port, socket_timeout=0.5, retry=None)
        self.values = {}

    async def acquire(self, name, ttl):
        self.values[name] = value = uuid.uuid4().hex
        return bool(await self.client.set(name, value, nx=True, px=int(ttl * 1000)))

    async def release(self, name):
        return await self.client.eval(RELEASE, 1, name, self.values[name]) == 1

    async def close(self):
        await self.client.aclose()


class Patient(Right):
    """Waits for each answer for as long as TCP does."""

    def __init__(self, servers):
        super().__init__(servers)
        host, port = servers[0]
        self.client = redis.asyncio.Redis(
            host=host, port=port, socket_timeout=None, socket_connect_timeout=None, retry=None
        )


class Looks(Right):
    """A release that looks, and then deletes."""

    async def release(self, name):
        if await self.client.get(name) != self.values[name].encode():
            return False
        await self.client.delete(name)
        return True


class Renews(Right):
    """A task renews the lease for as long as it is held."""

    async def acquire(self, name, ttl):
        if not await super().acquire(name, ttl):
            return False
        self.task = asyncio.create_task(self.renew(name, ttl))
        return True

    async def renew(self, name, ttl):
        while True:
            await asyncio.sleep(ttl / 3)
            await self.client.eval(EXTEND, 1, name, self.values[name], int(ttl * 1000))

    async def release(self, name):
        self.task.cancel()
        return await super().release(name)


class Tries(Right):
    """Uses what asyncio has: each has to work on virtual time."""

    async def acquire(self, name, ttl):
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with asyncio.timeout(0.2 * ttl):
                await asyncio.Event().wait()
        except TimeoutError:
            pass
        assert 0.19 * ttl < loop.time() - begun
        queue: asyncio.Queue[int] = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(self.put(queue, number))
        assert [queue.get_nowait() for _ in range(3)] == [0, 1, 2]
        assert await asyncio.to_thread(lambda: 7) == 7
        assert await asyncio.gather(*(asyncio.sleep(0, n) for n in range(3))) == [0, 1, 2]
        assert asyncio.current_task() in asyncio.all_tasks()
        with_lock = asyncio.Lock()
        async with with_lock:
            return await super().acquire(name, ttl)

    async def put(self, queue, number):
        await queue.put(number)


class Spins(Right):
    """Never waits for anything."""

    async def acquire(self, name, ttl):
        while True:
            await asyncio.sleep(0)


class Watches(Right):
    """Deletes its key in a transaction, and looks again if another client has touched it."""

    async def release(self, name):
        async with self.client.pipeline() as pipe:
            await pipe.watch(name)
            if await pipe.get(name) != self.values[name].encode():
                return False
            pipe.multi()
            pipe.delete(name)
            try:
                await pipe.execute()
            except redis.WatchError:
                return await self.was_touched(name)
        return True

    async def was_touched(self, name):
        return await super().release(name)


class DeletesBlindly(Watches):
    """Does not look again."""

    async def was_touched(self, name):
        return bool(await self.client.delete(name))


class Votes:
    """A quorum of several servers, asked by a task each. Votes belong to a request."""

    def __init__(self, servers):
        self.clients = [
            redis.asyncio.Redis(host=host, port=port, socket_timeout=1, retry=None)
            for host, port in servers
        ]
        self.votes, self.tasks, self.value = set(), [], None

    async def vote(self, number, name, value, ttl, votes):
        try:
            if await self.clients[number].set(name, value, nx=True, px=int(ttl * 1000)):
                votes.add(number)
        except redis.RedisError:
            pass

    def ballot(self):
        self.votes = set()
        return self.votes

    async def acquire(self, name, ttl):
        self.value, asked, votes = uuid.uuid4().hex, time.monotonic(), self.ballot()
        self.tasks = [
            asyncio.create_task(self.vote(number, name, self.value, ttl, votes))
            for number in range(len(self.clients))
        ]
        await asyncio.wait(self.tasks, timeout=ttl / 10)
        until = asked + ttl * 0.98
        if len(votes) > len(self.clients) // 2 and time.monotonic() < until:
            return Grant(deadline=until)
        await self.give_back(name)
        return False

    async def give_back(self, name):
        answers = await asyncio.gather(
            *(client.eval(RELEASE, 1, name, self.value) for client in self.clients),
            return_exceptions=True,
        )
        return sum(answer == 1 for answer in answers)

    async def release(self, name):
        if await self.give_back(name) <= len(self.clients) // 2:
            raise RuntimeError("not released by a majority")

    async def close(self):
        for task in self.tasks:
            task.cancel()
        for client in self.clients:
            await client.aclose()


class CountsLateVotes(Votes):
    """A late answer to an earlier request counts as a vote for the next one."""

    def ballot(self):
        self.votes.clear()
        return self.votes
