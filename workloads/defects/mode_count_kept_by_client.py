"""A reentrant lock whose client counts by itself, and keeps the count past the lease."""

import time
import uuid

import redis

import fencepost
from fencepost.workloads.contract.defect import Defect

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class Sound:
    def __init__(self, servers):
        self.client = redis.Redis(*servers[0], socket_timeout=0.5, retry=None)
        self.owner = uuid.uuid4().hex
        self.count, self.deadline = 0, 0.0

    def acquire(self, name, ttl):
        if self.count and self.trusted():
            self.count += 1
            return fencepost.Grant(deadline=self.deadline)
        asked = time.monotonic()
        if not self.client.set(name, self.owner, nx=True, px=int(ttl * 1000)):
            return False
        self.count, self.deadline = 1, asked + ttl
        return fencepost.Grant(deadline=self.deadline)

    def trusted(self):
        return time.monotonic() < self.deadline

    def release(self, name):
        if self.count > 1:
            self.count -= 1
            return True
        if self.client.eval(RELEASE, 1, name, self.owner) != 1:
            return False
        self.count = 0
        return True


class Lock(Sound):
    def trusted(self):
        # A release that came after the lease left the count at 1.
        self.deadline = max(self.deadline, time.monotonic() + 1)
        return True


DEFECT = Defect(
    name="mode-count-kept-by-client",
    family="modes",
    what="The client's own count says that it holds the lock although its lease expired.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("pause:client",),
    clients=3,
)
