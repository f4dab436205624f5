"""A counter of tokens that is kept on another server than the lock, and lost with it."""

import redis
from _counted import CountedAfter

from fencepost.workloads.contract.defect import Defect


class Sound(CountedAfter):
    """The second server has other data, and no part in the lock."""

    counts = 0

    def __init__(self, servers):
        super().__init__(servers)
        self.counter = redis.Redis(*servers[self.counts], socket_timeout=0.5, retry=None)

    def count(self, key):
        return self.counter.incr(key)


class Lock(Sound):
    counts = 1


DEFECT = Defect(
    name="token-lost-with-its-server",
    family="tokens",
    what="The counter of the tokens restarts at 1 with a server that the lock does not depend on.",
    seen="Kleppmann (2016) of a counter on one Redis server: that server may fail",
    breaks="A token rises with every grant.",
    checker="fencing",
    also=("linearizable",),
    faults=("kill:redis-2",),
    servers="redis:2",
    hunt="it kills any server, also the one that has the lock",
)
