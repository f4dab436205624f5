"""A lock without a lease."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        return bool(self.client.set(name, self.owner, nx=True))


DEFECT = Defect(
    name="lease-none",
    family="lease",
    what="The key has no expiry, so that a dead holder keeps the lock for ever.",
    seen="redis-py's Lock without a timeout, its default",
    breaks="A lease ends by itself.",
    checker="liveness",
    faults=("kill:client",),
)
