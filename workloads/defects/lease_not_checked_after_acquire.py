"""An acquire that waits for the lock, and dates its lease from the first of its requests."""

import time

from _lease import Lease

import fencepost
from fencepost.workloads.contract.defect import Defect


class Sound(Lease):
    timeout_s = 5.0

    def acquire(self, name, ttl):
        asked = time.monotonic()
        if not super().acquire(name, ttl):
            return False
        if self.too_late(asked + ttl):
            self.release(name)
            return False
        return fencepost.Grant(deadline=asked + ttl)

    def too_late(self, deadline):
        return time.monotonic() >= deadline


class Lock(Sound):
    def too_late(self, deadline):
        return False


DEFECT = Defect(
    name="lease-not-checked-after-acquire",
    family="lease",
    what="An acquire that took longer than its lease is answered as a grant.",
    seen="Redlock's third step, left out; npm's redlock 5.0.0-beta, issues 296 and 299",
    breaks="A grant is handed out while its lease runs.",
    checker="lease_exclusion",
    also=("linearizable",),
    faults=("pause:one",),
)
