"""A renewal that checks the owner and prolongs the key in two requests."""

from _lease import Extended as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def extend(self, name, ttl):
        if self.client.get(name) != self.owner.encode():
            return False
        left_ms = self.client.pttl(name)
        if left_ms > ttl * 1000:
            return True  # as the lease that is asked for, or longer
        return bool(self.client.pexpire(name, int(ttl * 1000)))


DEFECT = Defect(
    name="renewal-check-then-expire",
    family="renewal",
    what="A renewal reads the owner, and then prolongs the key whoever owns it by then.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("pause:client/between-requests",),
    clients=3,
)
