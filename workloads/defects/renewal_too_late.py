"""A thread that renews the lease when it has just expired."""

from _lease import Renewed

import fencepost
from fencepost.workloads.contract.defect import Defect


class Lock(Renewed):
    def acquire(self, name, ttl):
        return super().acquire(name, ttl) and fencepost.Grant(deadline=None)

    def renew(self, name, ttl, ended):
        # It waits for a third of the time that it receives.
        super().renew(name, 3.03 * ttl, ended)


DEFECT = Defect(
    name="renewal-too-late",
    family="renewal",
    what="The lease is renewed once per TTL, which is when it has expired.",
    seen="by construction",
    breaks="A holder learns that it has lost the lock.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    twin=False,
)
