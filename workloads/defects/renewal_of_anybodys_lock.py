"""A thread that renews a lock for as long as its client lives, although another may hold it."""

import redis
from _lease import Renewed as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def renew(self, name, ttl, ended):
        while not self.closed.wait(ttl / 3):
            try:
                self.client.pexpire(name, int(ttl * 1000))
            except redis.RedisError:
                continue


DEFECT = Defect(
    name="renewal-of-anybodys-lock",
    family="renewal",
    what="The thread of an earlier holder renews the lock of a dead one.",
    seen="Redisson, issue 1626: a watchdog that is never cancelled",
    breaks="A lease ends by itself.",
    checker="liveness",
    faults=("kill:client",),
)
