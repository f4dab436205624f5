"""A client that never connects again after an error of its connection."""

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
        self.usable = True

    def acquire(self, name, ttl):
        if not self.usable:
            raise fencepost.Failed("not connected")
        try:
            return bool(self.client.set(name, self.owner, nx=True, px=int(ttl * 1000)))
        except redis.RedisError:
            self.broken()
            raise

    def broken(self):
        self.client.close()  # the next command connects again

    def release(self, name):
        return self.client.eval(RELEASE, 1, name, self.owner) == 1


class Lock(Sound):
    def __init__(self, servers):
        super().__init__(servers)
        self.client.ping()

    def acquire(self, name, ttl):
        try:
            return super().acquire(name, ttl)
        except redis.RedisError as error:
            # The key may be there; it expires.
            raise fencepost.Failed(str(error)) from error

    def broken(self):
        self.usable = False


DEFECT = Defect(
    name="wait-never-reconnects",
    family="waiting",
    what="After one error of its connection a client answers every later request with an error.",
    seen="by construction",
    breaks="The lock is available again after a fault.",
    checker="liveness",
    faults=("partition:storage", "partition:one"),
)
