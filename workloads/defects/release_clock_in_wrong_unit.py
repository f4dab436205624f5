"""A release that compares a time in seconds with a lease in milliseconds."""

import time

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    deadline = 0.0

    def acquire(self, name, ttl):
        self.deadline = time.time() + int(ttl * 1000)
        return super().acquire(name, ttl)

    def release(self, name):
        if time.time() >= self.deadline:
            return False
        self.client.delete(name)
        return True


DEFECT = Defect(
    name="release-clock-in-wrong-unit",
    family="release",
    what="A release takes a lease in milliseconds for seconds, and deletes long after its end.",
    seen="redis-objects for Ruby, issue 234",
    breaks="A release ends only the hold of its own client.",
    checker="ownership",
    also=("lease_exclusion", "linearizable"),
    faults=("pause:client/other-holds",),
)
