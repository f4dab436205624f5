"""A short lease that is rounded to zero, which the code takes for "none"."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        seconds = int(ttl)
        return bool(self.client.set(name, self.owner, nx=True, ex=seconds or None))


DEFECT = Defect(
    name="lease-of-zero-is-none",
    family="lease",
    what="A lease of less than a second is cut to zero, which means a key without an expiry.",
    seen="reinhardt-web, issue 736, names the truncation to zero",
    breaks="A lease ends by itself.",
    checker="liveness",
    faults=("kill:client",),
    ttl_s=0.8,
)
