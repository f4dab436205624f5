"""A reentrant lock whose first release frees it, however often it was acquired."""

import uuid

import redis

from fencepost.workloads.contract.defect import Defect

ACQUIRE = """
local owner = redis.call('hget', KEYS[1], 'owner')
if owner and owner ~= ARGV[1] then return 0 end
redis.call('hset', KEYS[1], 'owner', ARGV[1])
redis.call('hincrby', KEYS[1], 'count', 1)
redis.call('pexpire', KEYS[1], ARGV[2])
return 1
"""
RELEASE = """
if redis.call('hget', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
if redis.call('hincrby', KEYS[1], 'count', -1) == 0 then redis.call('del', KEYS[1]) end
return 1
"""


class Sound:
    script = RELEASE

    def __init__(self, servers):
        self.client = redis.Redis(*servers[0], socket_timeout=0.5, retry=None)
        self.owner = uuid.uuid4().hex

    def acquire(self, name, ttl):
        return self.client.eval(ACQUIRE, 1, name, self.owner, int(ttl * 1000)) == 1

    def release(self, name):
        return self.client.eval(self.script, 1, name, self.owner) == 1


class Lock(Sound):
    script = RELEASE.replace(" == 0 then", " >= 0 then")


DEFECT = Defect(
    name="mode-one-release-frees-all",
    family="modes",
    what="A holder that acquired the lock twice and releases it once has freed it.",
    seen="by construction",
    breaks="A process that holds the lock may acquire it again.",
    checker="lease_exclusion",
    also=("linearizable",),
    promises=("reentrant",),
    clients=3,
)
