"""A lock that counts a server that does not answer as one that granted."""

import redis
from _majority import Majority as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def ask(self, server, name, owner, ttl):
        try:
            return bool(server.set(name, owner, nx=True, px=int(ttl * 1000)))
        except redis.TimeoutError:
            return True  # it may have granted


DEFECT = Defect(
    name="quorum-timeout-is-a-yes",
    family="quorum",
    what="A server that does not answer in time counts as one that granted.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    servers="redis:3",
    faults=("partition:majority", "partition:client"),
)
