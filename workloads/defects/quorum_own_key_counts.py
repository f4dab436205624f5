"""A retry that counts keys of its own first try, whose lease has run for a while."""

import time
import uuid

from _majority import Majority as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        owner = uuid.uuid4().hex
        for _ in range(3):
            begun = time.monotonic()
            granted = sum(self.ask(server, name, owner, ttl) for server in self.servers)
            if granted >= self.needed:
                break
            time.sleep(0.6 * ttl)
        return self.granted(name, owner, granted, begun + ttl * (1 - self.drift))

    def ask(self, server, name, owner, ttl):
        if super().ask(server, name, owner, ttl):
            return True
        try:
            return server.get(name) == owner.encode()
        except Exception:
            return False


DEFECT = Defect(
    name="quorum-own-key-counts",
    family="quorum",
    what="A retry counts the keys of an earlier try, and dates their lease from the retry.",
    seen="node-redlock issues 296 and 299 report a retry on top of its own keys",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    servers="redis:3",
    faults=("partition:client", "delay"),
)
