"""A client that counts its lease from the answer, and not from its request."""

import time

from _lease import Lease

import fencepost
from fencepost.workloads.contract.defect import Defect


class Sound(Lease):
    def acquire(self, name, ttl):
        asked = time.monotonic()
        if not super().acquire(name, ttl):
            return False
        return fencepost.Grant(deadline=self.start(asked) + ttl)

    def start(self, asked):
        return asked


class Lock(Sound):
    def start(self, asked):
        return time.monotonic()


DEFECT = Defect(
    name="lease-counted-from-the-answer",
    family="lease",
    what="The client counts its lease from the answer, which may have travelled for long.",
    seen="Redlock without its check of the elapsed time, as Kleppmann describes it (2016)",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("pause:client", "delay"),
)
