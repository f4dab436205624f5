"""An extend that takes an error for a refusal, and leaves a lock that its holder has given up."""

import redis
from _lease import Extended as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def extend(self, name, ttl):
        try:
            return super().extend(name, ttl)
        except redis.RedisError:
            return False


DEFECT = Defect(
    name="answer-no-although-extended",
    family="answers",
    what="An extend whose answer was lost passes for a refusal: the lock is given up and held.",
    seen="by construction",
    breaks="A refusal is certain, and only a lock that is held is refused.",
    checker="liveness",
    faults=("packet/loss", "partition:client"),
    promises=("true_refusals",),
)
