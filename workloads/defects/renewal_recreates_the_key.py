"""A renewal that sets the key although it may have expired."""

from _lease import Extended as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def extend(self, name, ttl):
        return bool(self.client.set(name, self.owner, px=int(ttl * 1000)))


DEFECT = Defect(
    name="renewal-recreates-the-key",
    family="renewal",
    what="A late renewal by SET without XX takes the key from the client that has it by then.",
    seen="friendsofhyperf/components, pull request 1030, whose heartbeat claims an expired lock",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("pause:client",),
)
