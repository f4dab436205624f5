"""A lock with a greatest lease, below which it silently cuts what its client asked for."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect

LONGEST_S = 1.0


class Lock(Sound):
    def acquire(self, name, ttl):
        return super().acquire(name, min(ttl, LONGEST_S))


DEFECT = Defect(
    name="lease-shorter-than-asked",
    family="lease",
    what="A lease longer than a built-in limit is cut to it, and the answer does not say so.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("pause:client",),
)
