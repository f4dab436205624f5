"""An extend that cleans up after itself when it comes too late, and deletes another's key."""

from _lease import Extended as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def extend(self, name, ttl):
        if super().extend(name, ttl):
            return True
        self.client.delete(name)
        return False


DEFECT = Defect(
    name="release-of-a-failed-extend",
    family="release",
    what="An extend that is refused deletes the key, although another client owns it.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("pause:client",),
)
