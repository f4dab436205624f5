"""A lock that raises the error of one server, although a majority has granted it the lock."""

from _majority import Majority as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def ask(self, server, name, owner, ttl):
        return bool(server.set(name, owner, nx=True, px=int(ttl * 1000)))


DEFECT = Defect(
    name="quorum-error-of-one-server",
    family="quorum",
    what="An acquire raises the error of a server that is down, and leaves its keys on the others.",
    seen="redlock-py 1.0.8, SPSCommerce/redlock-py 27",
    breaks="The lock is available while a minority of its servers is down.",
    checker="liveness",
    promises=("minority",),
    servers="redis:3",
    faults=("pause:one", "partition:one"),
)
