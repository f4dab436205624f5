"""An extend that drops the lease, and then asks for the new one."""

from _coroutines import Lease
from _lease import EXTEND

from fencepost.workloads.contract.defect import Defect

SET_AGAIN = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('set', KEYS[1], ARGV[1]) end
return 0
"""


class Sound(Lease):
    async def extend(self, name, ttl):
        return await self.client.eval(EXTEND, 1, name, self.owner, int(ttl * 1000)) == 1


class Lock(Lease):
    async def extend(self, name, ttl):
        if await self.client.eval(SET_AGAIN, 1, name, self.owner) == 0:
            return False
        return bool(await self.client.pexpire(name, int(ttl * 1000)))


DEFECT = Defect(
    name="cancel-extend-drops-the-lease",
    family="cancellation",
    what="An extend sets the key, and then its expiry; cancelled between, it leaves no expiry.",
    seen="by construction",
    breaks="A lease ends by itself.",
    checker="liveness",
    faults=("cancel",),
)
