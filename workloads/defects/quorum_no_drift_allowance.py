"""A lock that trusts its lease to the last moment.

It has no twin: a server whose clock ran slowly and is set right ends leases early by any amount.
"""

from _majority import Majority

from fencepost.workloads.contract.defect import Defect


class Lock(Majority):
    drift = 0.0


DEFECT = Defect(
    name="quorum-no-drift-allowance",
    family="quorum",
    what="A client relies on the whole lease although the servers' clocks run faster than its own.",
    seen="Redis' documentation of Redlock asks for the allowance",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable",),
    servers="redis:3",
    faults=("clock:majority/drift",),
    hunt="its clocks jump and do not drift",
    twin=False,
)
