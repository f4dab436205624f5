"""A release that deletes the key of any client."""

import uuid

import redis

from fencepost.workloads.contract.defect import Defect

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class Sound:
    def __init__(self, servers):
        self.client = redis.Redis(*servers[0], socket_timeout=0.5, retry=None)
        self.owner = uuid.uuid4().hex

    def acquire(self, name, ttl):
        return bool(self.client.set(name, self.owner, nx=True, px=int(ttl * 1000)))

    def release(self, name):
        return self.client.eval(RELEASE, 1, name, self.owner) == 1


class Lock(Sound):
    def release(self, name):
        self.client.delete(name)


DEFECT = Defect(
    name="release-without-owner-check",
    family="release",
    what="A release deletes the key without a check of its owner.",
    seen="the pattern that Redis' documentation of SET warns of",
    breaks="A release ends only the hold of its own client.",
    checker="ownership",
    also=("lease_exclusion", "linearizable"),
    faults=("pause:client/other-holds",),
)
