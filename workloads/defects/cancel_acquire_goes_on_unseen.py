"""An acquire that is shielded from its cancellation, and whose grant nobody receives."""

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
            pass  # nobody renews the lease, which ends it


class Lock(Sound):
    def cancelled(self, name, asking):
        pass


DEFECT = Defect(
    name="cancel-acquire-goes-on-unseen",
    family="cancellation",
    what="A shielded acquire goes on after its cancellation, and renews a lock that no client has.",
    seen="filelock, pull request 686: a heartbeat keeps what a cancelled acquire was granted",
    breaks="A lock that no client holds is granted.",
    checker="liveness",
    faults=("cancel",),
)
