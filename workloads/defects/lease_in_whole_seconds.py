"""A lease that is cut to whole seconds."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        return bool(self.client.set(name, self.owner, nx=True, ex=max(1, int(ttl))))


DEFECT = Defect(
    name="lease-in-whole-seconds",
    family="lease",
    what="A lease of 1.9 s becomes one of 1 s.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("pause:client",),
    ttl_s=1.9,
)
