"""A refused acquire that leaves its keys on the servers that granted it."""

import redis
from _majority import RELEASE, Majority

from fencepost.workloads.contract.defect import Defect


class Sound(Majority):
    def free(self, name, owner):
        silent = 0
        for server in self.servers:
            try:
                server.eval(RELEASE, 1, name, owner)
            except redis.RedisError:
                silent += 1
        if silent:
            raise TimeoutError(f"{silent} servers may keep the key until its lease expires")


class Lock(Majority):
    def granted(self, name, owner, granted, deadline):
        if granted < self.needed:
            return False  # the keys stay until their lease expires
        return super().granted(name, owner, granted, deadline)


DEFECT = Defect(
    name="quorum-minority-is-kept",
    family="quorum",
    what="A refused acquire keeps its keys, so that a free lock stays refused for a lease.",
    seen="redlock-py 1.0.8: with one of four servers down it raises and leaves three keys",
    breaks="A free lock is granted while a majority of its servers answers.",
    checker="liveness",
    promises=("minority",),
    servers="redis:3",
    faults=("pause:minority",),
    ttl_s=10.0,
)
