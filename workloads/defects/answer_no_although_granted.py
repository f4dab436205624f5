"""An acquire that is sent again after a timeout, and finds the lock held: by itself."""

import redis
from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        try:
            return super().acquire(name, ttl)
        except redis.TimeoutError:
            return super().acquire(name, ttl)


DEFECT = Defect(
    name="answer-no-although-granted",
    family="answers",
    what="A retry is refused because of the key that the first request has set.",
    seen="redis-py 8.1: Lock.acquire, whose connection retries by itself",
    breaks="A refusal is certain, and only a lock that is held is refused.",
    checker="liveness",
    faults=("packet/loss",),
    promises=("true_refusals",),
    clients=2,
)
