"""A lock that gives every lease its own default length."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect

DEFAULT_S = 60.0


class Lock(Sound):
    def acquire(self, name, ttl):
        return super().acquire(name, DEFAULT_S)


DEFECT = Defect(
    name="lease-longer-than-asked",
    family="lease",
    what="The TTL that the client asks for is ignored, and a long default is used.",
    seen="by construction",
    breaks="A lease ends by itself.",
    checker="liveness",
    faults=("kill:client",),
)
