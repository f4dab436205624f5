"""A release that deletes the key if the lease still runs by the client's own clock."""

import time

from _lease import Waiting as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    deadline = 0.0

    def acquire(self, name, ttl):
        grant = super().acquire(name, ttl)
        if grant:
            self.deadline = grant.deadline
        return grant

    def release(self, name):
        if time.monotonic() >= self.deadline:
            return False
        # The client may sleep here.
        self.client.delete(name)
        return True


DEFECT = Defect(
    name="release-trusts-own-clock",
    family="release",
    what="A release checks the client's clock, and then deletes the key whoever owns it by then.",
    seen="Celery's task cookbook since version 4, memcache_lock",
    breaks="A release ends only the hold of its own client.",
    checker="ownership",
    also=("lease_exclusion", "linearizable"),
    faults=("pause:client",),
)
