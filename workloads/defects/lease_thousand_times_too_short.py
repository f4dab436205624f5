"""A lease that takes seconds for milliseconds."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        return bool(self.client.set(name, self.owner, nx=True, px=int(ttl)))


DEFECT = Defect(
    name="lease-thousand-times-too-short",
    family="lease",
    what="A lease in seconds is passed as milliseconds.",
    seen="wyh-spring-ecosystem-student/spring-boot-student, issue 2",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
)
