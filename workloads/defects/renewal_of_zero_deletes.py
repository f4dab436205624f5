"""A renewal by a lease that is rounded to zero, which deletes the key."""

from _lease import EXTEND
from _lease import Extended as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def extend(self, name, ttl):
        # In whole seconds: PEXPIRE by 0 deletes the key, and answers 1.
        return self.client.eval(EXTEND, 1, name, self.owner, int(ttl) * 1000) == 1


DEFECT = Defect(
    name="renewal-of-zero-deletes",
    family="renewal",
    what="A renewal by less than a second becomes one by 0 s, which deletes the key.",
    seen="redis-py, issue 4279: Lock(timeout=0).reacquire() deletes the lock and returns True",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    ttl_s=0.8,
)
