"""A token that is drawn before the lock is asked for, and kept until it is granted."""

from _counted import CountedAfter as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    drawn = None

    def acquire(self, name, ttl):
        self.drawn = self.drawn or super().count(f"{name}:token")
        return super().acquire(name, ttl)

    def count(self, key):
        drawn, self.drawn = self.drawn, None
        return drawn


DEFECT = Defect(
    name="token-drawn-before-the-lock",
    family="tokens",
    what="The token is drawn before the lock, which others with higher ones may be granted first.",
    seen="by construction",
    breaks="A token rises with every grant.",
    checker="fencing",
    also=("linearizable",),
    clients=3,
)
