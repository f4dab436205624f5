"""A renewal that acquires the lock again where its lease has expired, and does not say so."""

from _lease import Extended as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def extend(self, name, ttl):
        return super().extend(name, ttl) or self.acquire(name, ttl)


DEFECT = Defect(
    name="renewal-takes-an-expired-lock-back",
    family="renewal",
    what="A renewal acquires the lock again after another client had it, and passes for a success.",
    seen="redlock-rb, issue 36",
    breaks="An extended lock was held all the time.",
    checker="linearizable",
    also=("lease_exclusion", "ownership"),
    faults=("pause:client",),
)
