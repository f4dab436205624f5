"""A lock that does not look at the clock after it has asked the servers."""

from _majority import Majority

import fencepost
from fencepost.workloads.contract.defect import Defect


class Sound(Majority):
    timeout_s = 0.8  # for two silent servers together, longer than the lease


class Lock(Sound):
    def granted(self, name, owner, granted, deadline):
        if granted < self.needed:
            return super().granted(name, owner, granted, deadline)
        self.owners[name] = owner
        return fencepost.Grant(deadline=deadline)


DEFECT = Defect(
    name="quorum-no-validity-check",
    family="quorum",
    what="A grant is handed out although its lease expired while the servers were asked.",
    seen="Redlock without its third step (Antirez, Is Redlock safe?, 2016)",
    breaks="A grant that is handed out has a lease that still runs.",
    checker="lease_exclusion",
    also=("linearizable",),
    servers="redis:5",
    faults=("pause:minority", "partition:client"),
    ttl_s=1.0,
)
