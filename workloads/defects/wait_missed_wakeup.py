"""A waiter that looks first and registers afterwards, and misses a release in between."""

import time
import uuid

import redis

import fencepost
from fencepost.workloads.contract.defect import Defect

RELEASE = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('del', KEYS[1])
if redis.call('del', KEYS[1] .. ':waiting') == 1 then redis.call('lpush', KEYS[1] .. ':wake', 1) end
return 1
"""


class Sound:
    patience_s = 1.0

    def __init__(self, servers):
        self.client = redis.Redis(*servers[0], socket_timeout=60, retry=None)  # blpop waits long
        self.owner = uuid.uuid4().hex

    def acquire(self, name, ttl):
        until = time.monotonic() + 4 * self.patience_s
        while True:
            asked = time.monotonic()
            if self.client.set(name, self.owner, nx=True, px=int(ttl * 1000)):
                if time.monotonic() < asked + ttl:
                    return fencepost.Grant(deadline=asked + ttl)
                self.release(name)
            if asked >= until:
                return False
            self.client.incr(f"{name}:waiting")
            self.client.blpop(f"{name}:wake", timeout=self.patience_s)

    def release(self, name):
        return self.client.eval(RELEASE, 1, name, self.owner) == 1


class Lock(Sound):
    patience_s = 30.0


DEFECT = Defect(
    name="wait-missed-wakeup",
    family="waiting",
    what="A release between a waiter's look and its registration wakes no client, and it waits on.",
    seen="the lost wake-up of condition variables; Sound looks again after 1 s",
    breaks="A free lock is granted to a client that waits for it.",
    checker="liveness",
    faults=("pause:client",),
    clients=2,
)
