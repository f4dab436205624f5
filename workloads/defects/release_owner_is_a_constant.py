"""A release that checks the owner, but all clients write the same one."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def __init__(self, servers):
        super().__init__(servers)
        self.owner = "locked"


DEFECT = Defect(
    name="release-owner-is-a-constant",
    family="release",
    what="All clients write the same value into the key, so that each passes for its owner.",
    seen="Celery's task cookbook up to version 3.1, which stores 'true'",
    breaks="A release ends only the hold of its own client.",
    checker="ownership",
    also=("lease_exclusion", "linearizable"),
    faults=("pause:client/other-holds",),
)
