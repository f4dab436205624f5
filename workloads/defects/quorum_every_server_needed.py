"""A lock that needs all of its servers."""

from _majority import Majority as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def __init__(self, servers):
        super().__init__(servers)
        self.needed = len(servers)


DEFECT = Defect(
    name="quorum-every-server-needed",
    family="quorum",
    what="One server that is down keeps the lock from everybody.",
    seen="by construction",
    breaks="The lock is available while a minority of its servers is down.",
    checker="liveness",
    promises=("minority",),
    servers="redis:3",
    faults=("pause:one", "partition:one"),
)
