"""A release that is sent again after a timeout, and deletes the key of the next holder."""

import time

import redis
from _lease import RELEASE
from _lease import Waiting as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def release(self, name):
        try:
            return self.client.eval(RELEASE, 1, name, self.owner) == 1
        except redis.TimeoutError:
            time.sleep(0.1)
            self.client.delete(name)  # it was this client's a moment ago
            return True


DEFECT = Defect(
    name="release-retried-blindly",
    family="release",
    what="A release that timed out is retried without a check of the owner, and has taken effect.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("partition:client", "pause:one"),
    clients=3,
)
