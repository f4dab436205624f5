"""A lock that is a token in a list: whoever takes it out holds the lock."""

import redis

from fencepost.workloads.contract.defect import Defect

INIT = """
if redis.call('setnx', KEYS[1] .. ':made', 1) == 1 then redis.call('lpush', KEYS[1], 'token') end
return 1
"""


class Lock:
    def __init__(self, servers):
        self.client = redis.Redis(*servers[0], socket_timeout=5, retry=None)

    def acquire(self, name, ttl):
        self.client.eval(INIT, 1, f"{name}:list")
        return self.client.blpop(f"{name}:list", timeout=1) is not None

    def release(self, name):
        self.client.lpush(f"{name}:list", "token")


DEFECT = Defect(
    name="wait-token-lost-with-holder",
    family="waiting",
    what="The lock is a list entry that its holder takes out, and a dead holder never puts back.",
    seen="redis-semaphore for Ruby has the pattern; it added stale-client timeouts for it",
    breaks="A lease ends by itself.",
    checker="liveness",
    also=("lease_exclusion", "linearizable", "ownership"),
    faults=("kill:client",),
    twin=False,
)
