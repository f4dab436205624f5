"""A majority that is half of an even number of servers."""

from _majority import Majority as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def __init__(self, servers):
        super().__init__(servers)
        self.needed = len(servers) // 2


DEFECT = Defect(
    name="quorum-half-is-enough",
    family="quorum",
    what="Half of an even number of servers grants the lock, so two halves grant it twice.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    servers="redis:4",
    faults=("partition:halves",),
)
