"""A token that is drawn before the lock is granted."""

from _counted import Counted as Sound

import fencepost
from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def acquire(self, name, ttl):
        token = self.client.incr(f"{name}:token")
        if not self.client.set(name, self.owner, nx=True, px=int(ttl * 1000)):
            return False
        return fencepost.Grant(token=token)


DEFECT = Defect(
    name="token-drawn-before-the-lock",
    family="tokens",
    what="The token is drawn before the lock, which others may be granted first.",
    seen="by construction",
    breaks="A token rises with every grant.",
    checker="fencing",
    also=("linearizable",),
    faults=("pause:client",),
)
