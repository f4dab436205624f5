"""An acquire that takes a timeout for a grant."""

import redis
from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        try:
            return super().acquire(name, ttl)
        except redis.TimeoutError:
            return True


DEFECT = Defect(
    name="answer-timeout-is-a-yes",
    family="answers",
    what="A request that timed out passes for one that was granted.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("packet/loss", "pause:one", "partition:client"),
)
