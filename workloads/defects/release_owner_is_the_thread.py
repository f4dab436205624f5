"""A release that checks the owner, which is the name of a thread."""

import threading

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def __init__(self, servers):
        super().__init__(servers)
        # Unique in its process, but each process has a main thread.
        self.owner = threading.main_thread().name


DEFECT = Defect(
    name="release-owner-is-the-thread",
    family="release",
    what="The owner is the name of a thread, which is unique only within a process.",
    seen="by construction",
    breaks="A release ends only the hold of its own client.",
    checker="ownership",
    also=("lease_exclusion", "linearizable"),
    faults=("pause:client/other-holds",),
)
