"""A retry that counts a server's second answer as a second server's."""

import time
import uuid

from _majority import Majority as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        owner, begun, granted = uuid.uuid4().hex, time.monotonic(), 0
        for _ in range(2):
            granted += sum(self.ask(server, name, owner, ttl) for server in self.servers)
            if granted >= self.needed:
                break
        return self.granted(name, owner, granted, begun + ttl * (1 - self.drift))

    def ask(self, server, name, owner, ttl):
        if super().ask(server, name, owner, ttl):
            return True
        try:
            return server.get(name) == owner.encode()
        except Exception:
            return False


DEFECT = Defect(
    name="quorum-answers-are-counted",
    family="quorum",
    what="A retry counts answers and not servers, so that one server is counted twice.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    servers="redis:3",
    faults=("partition:client", "delay"),
)
