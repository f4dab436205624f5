"""A client that counts its renewed lease from the answer, and not from its request."""

import time

from _lease import Extended

import fencepost
from fencepost.workloads.contract.defect import Defect


class Sound(Extended):
    def extend(self, name, ttl):
        asked = time.monotonic()
        if not super().extend(name, ttl):
            return False
        return fencepost.Grant(deadline=self.start(asked) + ttl)

    def start(self, asked):
        return asked


class Lock(Sound):
    def start(self, asked):
        return time.monotonic()


DEFECT = Defect(
    name="renewal-counted-from-the-answer",
    family="renewal",
    what="The client counts its renewed lease from the answer, which may have travelled for long.",
    seen="pottery 3.0.1, whose extend ignores the elapsed time",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("pause:client", "delay"),
)
