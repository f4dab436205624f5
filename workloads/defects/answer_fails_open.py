"""A lock that lets its client work without it while the server cannot be reached."""

import redis
from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        try:
            return super().acquire(name, ttl)
        except redis.RedisError:
            return True  # better to work twice than not at all

    def release(self, name):
        try:
            return super().release(name)
        except redis.RedisError:
            return True


DEFECT = Defect(
    name="answer-fails-open",
    family="answers",
    what="While the lock service cannot be reached, each client is granted the lock.",
    seen="Truxify, pull request 2950, mends a lock that returns a fake value when Redis is down",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("partition:client", "partition:one"),
)
