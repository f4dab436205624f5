"""A release that deletes the counter of the tokens together with the lock."""

from _counted import Counted as Sound

from fencepost.workloads.contract.defect import Defect

RELEASE = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1], KEYS[1] .. ':token')
"""


class Lock(Sound):
    def release(self, name):
        return self.client.eval(RELEASE, 1, name, self.owner) > 0


DEFECT = Defect(
    name="token-deleted-by-release",
    family="tokens",
    what="A release deletes the counter of the tokens with the lock, so that it starts again.",
    seen="by construction",
    breaks="No two grants have the same token.",
    checker="fencing",
    also=("linearizable",),
)
