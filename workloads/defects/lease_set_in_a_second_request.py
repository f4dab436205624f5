"""A lock that is taken by one request, and given its lease by another."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        if not self.client.setnx(name, self.owner):
            return False
        return bool(self.client.pexpire(name, int(ttl * 1000)))


DEFECT = Defect(
    name="lease-set-in-a-second-request",
    family="lease",
    what="SETNX and EXPIRE are two requests; a client that dies between them leaves no expiry.",
    seen="Laravel Horizon, issue 1738; ShedLock, issue 65; sidekiq-grouping, pull request 23",
    breaks="A lease ends by itself.",
    checker="liveness",
    also=("lease_exclusion", "linearizable"),
    faults=("kill:client",),
)
