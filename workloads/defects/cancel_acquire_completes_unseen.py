"""An acquire that is shielded from its cancellation, and whose grant no client receives."""

import asyncio

import redis
from _coroutines import Renewed

from fencepost.workloads.contract.defect import Defect


class Sound(Renewed):
    async def take(self, name, ttl):
        asking = asyncio.create_task(super().take(name, ttl))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            self.cancelled(name, asking)
            raise

    def cancelled(self, name, asking):
        self.undoing = asyncio.create_task(self.undo(name, asking))

    async def undo(self, name, asking):
        try:
            if hold := await asking:
                await self.give_back(name, *hold)
        except redis.RedisError:
            pass  # the lease ends, because its renewal was stopped


class Lock(Sound):
    def cancelled(self, name, asking):
        pass


DEFECT = Defect(
    name="cancel-acquire-completes-unseen",
    family="cancellation",
    what="A shielded acquire completes after its cancellation, and renews a lock of no client.",
    seen="filelock, pull request 686: a heartbeat refreshes the lock of a cancelled acquire",
    breaks="A lock that no client holds is granted.",
    checker="liveness",
    faults=("cancel",),
)
