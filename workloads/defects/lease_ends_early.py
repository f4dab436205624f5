"""A lease that the server ends early, by the allowance for drift that the client should keep."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect

DRIFT = 0.1


class Lock(Sound):
    def acquire(self, name, ttl):
        return super().acquire(name, ttl * (1 - DRIFT))


DEFECT = Defect(
    name="lease-ends-early",
    family="lease",
    what="The allowance for clock drift shortens the server's lease instead of the client's.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("pause:client",),
)
