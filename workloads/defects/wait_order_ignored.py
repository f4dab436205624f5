"""A lock that promises the order of asking, and polls."""

import time
import uuid

import redis
from _tickets import Queue as Sound

from fencepost.workloads.contract.defect import Defect

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class Lock:
    def __init__(self, servers):
        self.client = redis.Redis(*servers[0], socket_timeout=0.5, retry=None)
        self.owner = uuid.uuid4().hex

    def acquire(self, name, ttl):
        until, wait_s = time.monotonic() + 0.6 * ttl, 0.05
        while not self.client.set(name, self.owner, nx=True, px=int(ttl * 1000)):
            if time.monotonic() >= until:
                return False
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, 0.4)
        return True

    def release(self, name):
        return self.client.eval(RELEASE, 1, name, self.owner) == 1


DEFECT = Defect(
    name="wait-order-ignored",
    family="waiting",
    what="Who happens to ask first after a release is granted the lock, before earlier waiters.",
    seen="every lock that polls; only one that promises an order breaks it",
    breaks="Clients are granted the lock in the order in which they asked.",
    checker="liveness",
    promises=("fifo",),
    clients=4,
)
