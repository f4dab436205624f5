"""A token that each client counts by itself."""

from _counted import Counted as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    granted = 0

    def token(self, name, counted):
        self.granted += 1
        return self.granted


DEFECT = Defect(
    name="token-per-client",
    family="tokens",
    what="Each client counts its own grants, and uses that number as its token.",
    seen="coalesce-labs/catalyst, issue 3244: each host computes the next generation by itself",
    breaks="No two grants have the same token.",
    checker="fencing",
    also=("linearizable",),
)
