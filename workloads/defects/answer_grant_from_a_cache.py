"""A client that remembers that it has the lock, and forgets that it has released it."""

import time

from _lease import Lease as Sound

import fencepost
from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    deadline = 0.0

    def acquire(self, name, ttl):
        if time.monotonic() < self.deadline:
            return fencepost.Grant(deadline=self.deadline)
        asked = time.monotonic()
        if not super().acquire(name, ttl):
            return False
        self.deadline = asked + ttl
        return fencepost.Grant(deadline=self.deadline)


DEFECT = Defect(
    name="answer-grant-from-a-cache",
    family="answers",
    what="A client answers from memory that it has the lock, which it has released since.",
    seen="tooz 9.1, etcd3gw and Redis drivers: `acquired` is a local set",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
)
