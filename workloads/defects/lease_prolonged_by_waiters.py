"""A lock whose lease starts again with each request, also with one that is refused."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        granted, _ = (
            self.client.pipeline().setnx(name, self.owner).pexpire(name, int(ttl * 1000)).execute()
        )
        return bool(granted)


DEFECT = Defect(
    name="lease-prolonged-by-waiters",
    family="lease",
    what="SETNX and EXPIRE are sent together, so that a refused client prolongs the lease.",
    seen="by construction",
    breaks="A lease ends by itself.",
    checker="liveness",
    faults=("kill:client",),
    clients=3,
    hunt="its clients do not keep asking for long enough",
)
