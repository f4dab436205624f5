"""An extension that counts as made once any server has made it."""

import time

import redis
from _majority import Majority

import fencepost
from fencepost.workloads.contract.defect import Defect

EXTEND = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
return 0
"""


class Sound(Majority):
    def extend(self, name, ttl):
        begun = time.monotonic()
        extended = sum(self.prolong(server, name, ttl) for server in self.servers)
        deadline = begun + ttl * (1 - self.drift)
        if extended < self.needed or time.monotonic() >= deadline:
            raise TimeoutError("too few servers extended the lease")  # some may have
        return fencepost.Grant(deadline=deadline)

    def prolong(self, server, name, ttl):
        try:
            return server.eval(EXTEND, 1, name, self.owners[name], int(ttl * 1000))
        except redis.RedisError:
            return 0


class Lock(Sound):
    def extend(self, name, ttl):
        needed, self.needed = self.needed, 1
        try:
            return super().extend(name, ttl)
        finally:
            self.needed = needed


DEFECT = Defect(
    name="quorum-one-server-extends",
    family="quorum",
    what="An extension is answered ok although a majority of the servers did not make it.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    servers="redis:3",
    faults=("partition:client", "pause:client"),
)
