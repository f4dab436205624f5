"""Reentrant locks on one Redis server, which count how often their holder has acquired them."""

from __future__ import annotations

import time
import uuid

import redis

import fencepost

PROLONG = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
return 0
"""
DELETE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class Prolongs:
    """Its second acquire prolongs the lease of the key."""

    promises = ("reentrant",)

    def __init__(self, servers):
        self.redis = redis.Redis(*servers[0], socket_timeout=0.2, retry=None)
        self.held = {}

    def acquire(self, name, ttl):
        until = time.monotonic() + ttl
        value, depth = self.held.get(name, (uuid.uuid4().hex, 0))
        if depth == 0:
            granted = self.redis.set(name, value, nx=True, px=int(ttl * 1000))
        else:
            granted = self.granted_again(name, value, ttl)
        if not granted:
            self.held.pop(name, None)
            return False
        self.held[name] = value, depth + 1
        return fencepost.Grant(deadline=until)

    def granted_again(self, name, value, ttl):
        return self.redis.eval(PROLONG, 1, name, value, int(ttl * 1000))

    def release(self, name):
        value, depth = self.held.pop(name, ("", 0))
        if depth > 1:
            self.held[name] = value, depth - 1
            return True
        return self.redis.eval(DELETE, 1, name, value) == 1

    def close(self):
        self.redis.close()


class Counts(Prolongs):
    """Its second acquire only counts."""

    def granted_again(self, name, value, ttl):
        return True
