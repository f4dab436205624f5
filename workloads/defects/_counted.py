"""Sound locks with fencing tokens on one Redis server, which the token-* locks change."""

import time

from _lease import Lease

import fencepost

ACQUIRE = """
if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('incr', KEYS[1] .. ':token')
end
return false
"""


class Counted(Lease):
    """One script takes the lock and counts the grant."""

    def acquire(self, name, ttl):
        token = self.client.eval(ACQUIRE, 1, name, self.owner, int(ttl * 1000))
        return token is not None and fencepost.Grant(token=self.token(name, token))

    def token(self, name, counted):
        return counted


class CountedAfter(Lease):
    """It takes the lock, counts the grant, and gives the lock back if that took too long."""

    def acquire(self, name, ttl):
        asked = time.monotonic()
        if not super().acquire(name, ttl):
            return False
        token = self.count(f"{name}:token")
        if self.too_late(asked + ttl):
            self.release(name)
            return False
        return fencepost.Grant(token=token, deadline=asked + ttl)

    def count(self, key):
        return self.client.incr(key)

    def too_late(self, deadline):
        return time.monotonic() >= deadline
