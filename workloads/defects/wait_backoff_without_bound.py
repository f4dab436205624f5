"""A waiter that doubles its delay without a limit."""

import time
import uuid

import redis

import fencepost
from fencepost.workloads.contract.defect import Defect

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class Lock:
    longest_s = 1000.0

    def __init__(self, servers):
        self.client = redis.Redis(*servers[0], socket_timeout=0.5, retry=None)
        self.owner = uuid.uuid4().hex

    def acquire(self, name, ttl):
        until, wait_s = time.monotonic() + 60, 0.05
        while time.monotonic() < until:
            asked = time.monotonic()
            if self.client.set(name, self.owner, nx=True, px=int(ttl * 1000)):
                return fencepost.Grant(deadline=asked + ttl)
            time.sleep(wait_s)
            wait_s = min(4 * wait_s, self.longest_s)
        return False

    def release(self, name):
        return self.client.eval(RELEASE, 1, name, self.owner) == 1


class Sound(Lock):
    longest_s = 0.2


DEFECT = Defect(
    name="wait-backoff-without-bound",
    family="waiting",
    what="A waiter's delay grows without a limit, so that it sleeps while the lock is free.",
    seen="by construction",
    breaks="A free lock is granted to a client that waits for it.",
    checker="liveness",
    clients=2,
)
