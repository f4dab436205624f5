"""A sound lock on a majority of independent Redis servers, which the quorum-* locks change."""

import time
import uuid
from contextlib import suppress

import redis

import fencepost

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class Majority:
    drift = 0.01  # the part of a lease by which clocks may differ
    timeout_s = 0.1

    def __init__(self, servers):
        self.servers = [
            redis.Redis(
                *one,
                socket_timeout=self.timeout_s,
                socket_connect_timeout=self.timeout_s,
                retry=None,
            )
            for one in servers
        ]
        self.needed = len(servers) // 2 + 1
        self.owners = {}

    def acquire(self, name, ttl):
        owner, begun = uuid.uuid4().hex, time.monotonic()
        granted = sum(self.ask(server, name, owner, ttl) for server in self.servers)
        return self.granted(name, owner, granted, begun + ttl * (1 - self.drift))

    def granted(self, name, owner, granted, deadline):
        if granted >= self.needed and time.monotonic() < deadline:
            self.owners[name] = owner
            return fencepost.Grant(deadline=deadline)
        self.free(name, owner)
        return False

    def ask(self, server, name, owner, ttl):
        try:
            return bool(server.set(name, owner, nx=True, px=int(ttl * 1000)))
        except redis.RedisError:
            return False

    def free(self, name, owner):
        for server in self.servers:
            with suppress(redis.RedisError):  # its key expires
                server.eval(RELEASE, 1, name, owner)

    def release(self, name):
        self.free(name, self.owners.pop(name))
