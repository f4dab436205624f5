"""A majority lock whose token is the highest of the counters of the servers that granted it."""

from _majority import Majority

import fencepost
from fencepost.workloads.contract.defect import Defect


class Lock(Majority):
    """Two majorities share a server, but its counter may be behind the others'."""

    def acquire(self, name, ttl):
        self.counts = [0]
        grant = super().acquire(name, ttl)
        if not grant:
            return grant
        return fencepost.Grant(token=self.counts[1], deadline=grant.deadline)

    def ask(self, server, name, owner, ttl):
        granted = super().ask(server, name, owner, ttl)
        if granted:
            self.counts.append(server.incr(f"{name}:token"))
        return granted


DEFECT = Defect(
    name="token-counted-on-each-server",
    family="tokens",
    what="Each server of a majority lock counts by itself, and their counters go out of step.",
    seen="Kleppmann (2016) of Redlock: counters on several nodes would go out of sync",
    breaks="A token rises with every grant.",
    checker="fencing",
    also=("linearizable",),
    servers="redis:3",
    faults=("partition:minority", "partition:client"),
    twin=False,
)
