"""A lock that does not look at the clock after it has asked the servers."""

from _majority import Majority as Sound

import fencepost
from fencepost.workloads.contract.defect import Defect


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
    faults=("pause:client/replies-in-flight", "delay", "pause:minority"),
)
