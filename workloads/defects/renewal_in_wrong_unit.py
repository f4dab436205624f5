"""A renewal that takes seconds for milliseconds."""

from _lease import Extended as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def extend(self, name, ttl):
        return super().extend(name, ttl / 1000)


DEFECT = Defect(
    name="renewal-in-wrong-unit",
    family="renewal",
    what="A renewal passes seconds as milliseconds, and so ends the lease.",
    seen="node-redlock, pull request 2, mixed EXPIRE and PEXPIRE up the other way",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
)
