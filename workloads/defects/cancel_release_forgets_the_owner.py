"""A release that forgets its hold, and then asks."""

from _coroutines import Renewed as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    async def release(self, name):
        (owner, renewal), self.hold = self.hold, None
        released = await self.delete(name, owner)
        renewal.cancel()
        return released


DEFECT = Defect(
    name="cancel-release-forgets-the-owner",
    family="cancellation",
    what="A release forgets the owner, and then asks; cancelled, it leaves a lock that is renewed.",
    seen="redis-py, issue 3847, which pull request 3900 mends",
    breaks="A lock that no client holds is granted.",
    checker="liveness",
    faults=("cancel",),
)
