"""A lock that loads its script once, and misses it after a restart of the server."""

import redis
from _lease import Lease

import fencepost
from fencepost.workloads.contract.defect import Defect

ACQUIRE = """
if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return 0
"""


class Lock(Lease):
    loaded = None

    def __init__(self, servers):
        super().__init__(servers)
        # Once in a process, whatever becomes of the server.
        Lock.loaded = Lock.loaded or self.client.script_load(ACQUIRE)

    def acquire(self, name, ttl):
        try:
            return self.client.evalsha(Lock.loaded, 1, name, self.owner, int(ttl * 1000)) == 1
        except redis.ResponseError as error:
            raise fencepost.Failed(f"Redis: {error}") from error


DEFECT = Defect(
    name="answer-noscript",
    family="answers",
    what="A script is loaded once; after a restart of the server each request fails: NOSCRIPT.",
    seen="redlock-rb, issues 27 and 148; cashews, pull request 387; symfony/lock, issue 59686",
    breaks="The lock is available again after a fault.",
    checker="liveness",
    also=("lease_exclusion", "linearizable", "ownership"),
    faults=("kill:one",),
    twin=False,
)
