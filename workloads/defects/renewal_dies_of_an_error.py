"""A renewing thread that ends with the first error of its connection."""

from _lease import EXTEND, Renewed

import fencepost
from fencepost.workloads.contract.defect import Defect


class Lock(Renewed):
    def acquire(self, name, ttl):
        return super().acquire(name, ttl) and fencepost.Grant(deadline=None)

    def renew(self, name, ttl, ended):
        while not ended.wait(ttl / 3):
            # It raises on a timeout, and nothing catches that.
            self.client.eval(EXTEND, 1, name, self.owner, int(ttl * 1000))


DEFECT = Defect(
    name="renewal-dies-of-an-error",
    family="renewal",
    what="One timeout ends the renewing thread, and so the lease of a holder that works on.",
    seen="Jackrabbit Oak, OAK-12180, pull request 2847; Redisson, issue 2515",
    breaks="A holder learns that it has lost the lock.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("partition:client", "packet/loss", "pause:one"),
    twin=False,
)
