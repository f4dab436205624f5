"""An acquire that takes an error for a refusal."""

import redis
from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        try:
            return super().acquire(name, ttl)
        except redis.RedisError:
            return False


DEFECT = Defect(
    name="answer-timeout-is-a-no",
    family="answers",
    what="A timeout is answered as a refusal, although the server may have granted the lock.",
    seen="redlock-rb, issue 108; sim, pull request 6864; Truxify, issue 6003",
    breaks="A refusal is certain, and only a lock that is held is refused.",
    checker="liveness",
    faults=("packet/loss", "pause:one", "partition:client"),
    promises=("true_refusals",),
    clients=2,
)
