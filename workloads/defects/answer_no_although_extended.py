"""An extend that takes an error for a refusal, and leaves a lock that its holder has given up."""

import redis
from _lease import Extended

from fencepost.workloads.contract.defect import Defect


class Lock(Extended):
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
    breaks="A refusal is certain.",
    checker="",
    hidden="The service may keep a lease for longer than its client counts on, and after an extend "
    "that was refused no client knows for how long. All others wait for up to a TTL.",
    twin=False,
)
