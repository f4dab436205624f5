"""Sound locks on one Redis server, which other files change.

A lease; one whose client waits for it; one that its holder extends; one that a thread renews.
"""

import random
import threading
import time
import uuid

import redis

import fencepost

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""
EXTEND = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
return 0
"""


class Lease:
    timeout_s = 0.5

    def __init__(self, servers):
        self.client = redis.Redis(*servers[0], socket_timeout=self.timeout_s, retry=None)
        self.owner = uuid.uuid4().hex

    def acquire(self, name, ttl):
        return bool(self.client.set(name, self.owner, nx=True, px=int(ttl * 1000)))

    def release(self, name):
        return self.client.eval(RELEASE, 1, name, self.owner) == 1

    def close(self):
        self.client.close()


class Waiting(Lease):
    """It polls until it is granted the lock, for up to one and a half TTLs."""

    def acquire(self, name, ttl):
        until = time.monotonic() + 1.5 * ttl
        while (asked := time.monotonic()) < until:
            # A late answer may come when the lease has expired.
            if super().acquire(name, ttl) and time.monotonic() < asked + ttl:
                return fencepost.Grant(deadline=asked + ttl)
            time.sleep(random.uniform(0.05, 0.25) * ttl)
        return False


class Extended(Waiting):
    def extend(self, name, ttl):
        return self.client.eval(EXTEND, 1, name, self.owner, int(ttl * 1000)) == 1


class Renewed(Lease):
    """Its thread renews the lease from time to time. The client counts on the first lease alone."""

    def __init__(self, servers):
        super().__init__(servers)
        self.ended, self.closed = threading.Event(), threading.Event()

    def acquire(self, name, ttl):
        if not super().acquire(name, ttl):
            return False
        self.ended = threading.Event()
        threading.Thread(target=self.renew, args=(name, ttl, self.ended), daemon=True).start()
        return True

    def renew(self, name, ttl, ended):
        while not ended.wait(ttl / 3):
            try:
                if self.client.eval(EXTEND, 1, name, self.owner, int(ttl * 1000)) == 0:
                    return
            except redis.RedisError:
                continue

    def release(self, name):
        self.ended.set()
        return super().release(name)

    def close(self):
        self.ended.set()
        self.closed.set()
        super().close()
