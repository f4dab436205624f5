"""A release that answers yes and leaves the key."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def release(self, name):
        return True


DEFECT = Defect(
    name="release-does-nothing",
    family="release",
    what="A release answers that the lock is free, and leaves it to expire.",
    seen="by construction",
    breaks="Only a lock that is held is refused.",
    checker="liveness",
    promises=("true_refusals",),
)
