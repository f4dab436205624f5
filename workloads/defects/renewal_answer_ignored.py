"""A renewal that does not look at its answer."""

from _lease import Extended as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def extend(self, name, ttl):
        super().extend(name, ttl)
        return True


DEFECT = Defect(
    name="renewal-answer-ignored",
    family="renewal",
    what="A renewal that the server refused passes for a success.",
    seen="cozy-stack before pull request 4911, which discards the result of Extend",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("pause:client",),
)
