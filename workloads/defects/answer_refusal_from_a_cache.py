"""A client that remembers how long the lock is held, and does not ask before."""

import time

from _lease import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    held_until = 0.0

    def acquire(self, name, ttl):
        if time.monotonic() < self.held_until:
            return False
        granted = super().acquire(name, ttl)
        if not granted:
            # No client needs to ask before: saves requests.
            self.held_until = time.monotonic() + max(0, self.client.pttl(name)) / 1000
        return granted


DEFECT = Defect(
    name="answer-refusal-from-a-cache",
    family="answers",
    what="A refusal is repeated from memory until the lease would expire, also after a release.",
    seen="by construction",
    breaks="Only a lock that is held is refused.",
    checker="liveness",
    promises=("true_refusals",),
)
