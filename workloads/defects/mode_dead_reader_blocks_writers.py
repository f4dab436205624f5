"""A lock for readers and a writer that counts its readers, and does not notice that one died."""

import redis

from fencepost.workloads.contract.defect import Defect
from fencepost.workloads.contract.lock import Failed, Grant
from fencepost.workloads.contract.locktype import LockType

# Readers are a sorted set: each with the time at which its lease ends.
NOW = """
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""
READ = (
    NOW
    + """
if redis.call('exists', KEYS[1] .. ':writer') == 1 then return 0 end
redis.call('zadd', KEYS[1] .. ':readers', now + ARGV[2], ARGV[1])
return 1
"""
)
WRITE = (
    NOW
    + """
redis.call('zremrangebyscore', KEYS[1] .. ':readers', '-inf', now)
if redis.call('zcard', KEYS[1] .. ':readers') > 0 then return 0 end
return redis.call('set', KEYS[1] .. ':writer', ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0
"""
)
RELEASE = """
if redis.call('zrem', KEYS[1] .. ':readers', ARGV[1]) == 1 then return 1 end
if redis.call('get', KEYS[1] .. ':writer') ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1] .. ':writer')
"""


class ReadersAndWriter:
    write = WRITE

    def __init__(self, env, nodes, options):
        self.env = env
        host, port = env.address(nodes[0])
        self.client = redis.Redis(host, port, socket_timeout=0.5, retry=None)

    def acquire(self, name, ttl_ns):
        return self.ask(self.write, name, ttl_ns)

    def acquire_shared(self, name, ttl_ns):
        return self.ask(READ, name, ttl_ns)

    def ask(self, script, name, ttl_ns):
        asked, secret = self.env.now(), self.env.random.randbytes(8).hex()
        if not self.client.eval(script, 1, name, secret, ttl_ns // 1_000_000):
            raise Failed("not-granted", "it is held")
        return Grant(name, None, asked + ttl_ns, secret)

    def extend(self, grant, ttl_ns):
        raise Failed("refused", "it cannot be extended")

    def release(self, grant):
        if not self.client.eval(RELEASE, 1, grant.name, grant.secret):
            raise Failed("not-held", "its lease expired")

    def close(self):
        self.client.close()


class NeverForgets(ReadersAndWriter):
    write = WRITE.replace("redis.call('zremrangebyscore'", "-- redis.call('zremrangebyscore'")


WHAT = "a lock for readers and a writer on Redis"

Sound = LockType(
    "readers-and-writer", WHAT, ReadersAndWriter, servers=1, extends=False, shared=True
)
Lock = LockType(
    "readers-never-forgotten", WHAT, NeverForgets, servers=1, extends=False, shared=True
)

DEFECT = Defect(
    name="mode-dead-reader-blocks-writers",
    family="modes",
    what="The lease of a reader never ends, so that a dead reader keeps all writers out.",
    seen="by construction",
    breaks="A lease ends by itself.",
    checker="liveness",
    faults=("kill:client",),
    shared=True,
    hunt="its clients take no shared holds",
)
