"""A release that checks the owner, which each client draws from the same seed."""

import random

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def __init__(self, servers):
        super().__init__(servers)
        self.owner = f"{random.Random(0).getrandbits(128):x}"


DEFECT = Defect(
    name="release-owner-from-one-seed",
    family="release",
    what="All clients draw their owner's value from the same seed, and so the same value.",
    seen="by construction",
    breaks="A release ends only the hold of its own client.",
    checker="ownership",
    also=("lease_exclusion", "linearizable"),
    faults=("pause:client/other-holds",),
)
