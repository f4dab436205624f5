"""A release that takes an error for a success."""

import redis
from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def release(self, name):
        try:
            return super().release(name)
        except redis.RedisError:
            return True


DEFECT = Defect(
    name="release-error-swallowed",
    family="release",
    what="A release whose request was lost answers that the lock is free, and leaves it.",
    seen="by construction",
    breaks="Only a lock that is held is refused.",
    checker="liveness",
    # Its late request may release the next hold of the same client.
    also=("lease_exclusion", "linearizable", "ownership"),
    faults=("packet/loss", "partition:client"),
    promises=("true_refusals",),
    clients=2,
)
