"""A refused acquire that leaves its keys on the servers that granted it."""

from _majority import Majority as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def granted(self, name, owner, granted, deadline):
        if granted < self.needed:
            return False  # the keys stay until their lease expires
        return super().granted(name, owner, granted, deadline)


DEFECT = Defect(
    name="quorum-minority-is-kept",
    family="quorum",
    what="A refused acquire keeps its keys on a minority, so that a free lock is refused.",
    seen="redlock-py 1.0.8: with one of four servers down it raises and leaves three keys",
    breaks="A lock is refused only while another client holds it.",
    checker="liveness",
    promises=("true_refusals",),
    servers="redis:3",
    ttl_s=10.0,
)
