"""A renewal that takes an error for a success."""

import redis
from _lease import Extended as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def extend(self, name, ttl):
        try:
            return super().extend(name, ttl)
        except redis.RedisError:
            return True


DEFECT = Defect(
    name="renewal-timeout-is-a-yes",
    family="renewal",
    what="A renewal that did not reach the server passes for a success.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("partition:client", "packet/loss"),
)
