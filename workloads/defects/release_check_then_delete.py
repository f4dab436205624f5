"""A release that checks the owner and deletes the key in two requests."""

from _lease import Waiting as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def release(self, name):
        if self.client.get(name) != self.owner.encode():
            return False
        self.client.delete(name)
        return True


DEFECT = Defect(
    name="release-check-then-delete",
    family="release",
    what="A release reads the owner, and then deletes the key whoever owns it by then.",
    seen="SuperteamDAO/earn, pull request 1478; redis/redis issue 4308 explains the race",
    breaks="A release ends only the hold of its own client.",
    checker="ownership",
    also=("lease_exclusion", "linearizable"),
    faults=("pause:client",),
)
