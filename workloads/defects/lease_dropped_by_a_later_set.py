"""A holder that writes into its key, and so takes away the expiry."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        if not super().acquire(name, ttl):
            return False
        # For people who look: who has it. A plain SET clears the expiry.
        self.client.set(name, self.owner, xx=True)
        return True


DEFECT = Defect(
    name="lease-dropped-by-a-later-set",
    family="lease",
    what="The holder updates the value by SET without KEEPTTL, which removes the expiry.",
    seen="Redis' documentation of SET: it discards the TTL",
    breaks="A lease ends by itself.",
    checker="liveness",
    also=("lease_exclusion", "linearizable", "ownership"),
    faults=("kill:client",),
)
