"""A thread that renews a lock after its release."""

import redis
from _lease import Renewed as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def renew(self, name, ttl, ended):
        while not self.closed.wait(ttl / 3):  # not `ended`, which a release sets
            try:
                self.client.set(name, self.owner, px=int(ttl * 1000))
            except redis.RedisError:
                continue


DEFECT = Defect(
    name="renewal-goes-on-after-release",
    family="renewal",
    what="The thread that renews the lease outlives the release, and sets the key again.",
    seen="Redisson 4.4.0, issue 7272: the watchdog outlives unlock()",
    breaks="A released lock is free.",
    checker="liveness",
    also=("lease_exclusion", "linearizable", "ownership"),
)
