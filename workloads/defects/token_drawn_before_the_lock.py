"""A token that is drawn before its client waits for the lock."""

import time

from _lease import Waiting

import fencepost
from fencepost.workloads.contract.defect import Defect


class Sound(Waiting):
    def acquire(self, name, ttl):
        grant = super().acquire(name, ttl)
        if not grant:
            return False
        token = self.draw(name)
        if time.monotonic() >= grant.deadline:
            self.release(name)
            return False
        return fencepost.Grant(token=token, deadline=grant.deadline)

    def draw(self, name):
        return self.client.incr(f"{name}:token")


class Lock(Sound):
    def acquire(self, name, ttl):
        self.drawn = super().draw(name)
        return super().acquire(name, ttl)

    def draw(self, name):
        return self.drawn


DEFECT = Defect(
    name="token-drawn-before-the-lock",
    family="tokens",
    what="The token is drawn before the lock, which a client with a higher one may be granted first.",
    seen="by construction",
    breaks="A token rises with every grant.",
    checker="fencing",
    also=("linearizable",),
    clients=3,
)
