"""A renewal that prolongs the key, whoever owns it."""

from _lease import Extended as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def extend(self, name, ttl):
        return bool(self.client.pexpire(name, int(ttl * 1000)))


DEFECT = Defect(
    name="renewal-without-owner-check",
    family="renewal",
    what="A late renewal prolongs the lease of the next holder, and passes for a success.",
    seen="Redisson, issue 597: whether the lock still belongs to its owner was not checked",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("pause:client",),
)
