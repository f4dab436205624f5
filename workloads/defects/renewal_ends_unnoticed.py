"""A lock that is renewed in the background, whose client never learns that the renewal failed."""

from _lease import Renewed as Sound

import fencepost
from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        # Until the release: a thread renews it.
        return super().acquire(name, ttl) and fencepost.Grant(deadline=None)


DEFECT = Defect(
    name="renewal-ends-unnoticed",
    family="renewal",
    what="The renewing thread stops once the lease is lost, and the holder is not informed.",
    seen="kazoo 2.11: nothing resets is_acquired when the session is lost; Redisson, pull request "
    "7254",
    breaks="A holder learns that it has lost the lock.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("partition:client", "pause:client"),
)
