"""A lease that takes milliseconds for seconds."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        return bool(self.client.set(name, self.owner, nx=True, ex=int(ttl * 1000)))


DEFECT = Defect(
    name="lease-thousand-times-too-long",
    family="lease",
    what="A lease in milliseconds is passed as seconds.",
    seen="dyndb-mutex, issue 13, whose lease ends in the year 52984",
    breaks="A lease ends by itself.",
    checker="liveness",
    faults=("kill:client",),
)
