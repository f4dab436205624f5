"""A release that deletes the key if its client remembers that it was granted the lock."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    held = False

    def acquire(self, name, ttl):
        self.held = super().acquire(name, ttl)
        return self.held

    def release(self, name):
        if not self.held:
            return False
        self.held = False
        self.client.delete(name)
        return True


DEFECT = Defect(
    name="release-trusts-own-flag",
    family="release",
    what="A release asks the client's own flag, which no expiry of the lease clears.",
    seen="the `finally: cache.delete(key)` of Celery's task cookbook up to version 3.1",
    breaks="A release ends only the hold of its own client.",
    checker="ownership",
    also=("lease_exclusion", "linearizable"),
    faults=("pause:client/other-holds",),
)
