"""An acquire that takes the absence of a value for a grant."""

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        # redis-py answers True or None, never False.
        return self.client.set(name, self.owner, nx=True, px=int(ttl * 1000)) is not False


DEFECT = Defect(
    name="answer-nothing-is-a-yes",
    family="answers",
    what="SET NX answers nothing where it is refused, and the code looks for False.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
)
