"""An acquire that stops to wait for its answer, and leaves the lock that it was granted."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Cancelled

import redis

from fencepost.workloads.contract.defect import Defect

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class Sound:
    """It gives back a lock that is granted late. Where that is lost as well, the lease ends it."""

    leases = True

    def __init__(self, servers):
        self.client = redis.Redis(*servers[0], socket_timeout=1, retry=None)
        self.pool = ThreadPoolExecutor(4)
        self.owners = {}

    def acquire(self, name, ttl):
        owner = uuid.uuid4().hex
        px = int(ttl * 1000) if self.leases else None
        answer = self.pool.submit(self.client.set, name, owner, nx=True, px=px)
        try:
            granted = answer.result(timeout=0.3)
        except Cancelled:
            answer.cancel()
            self.cancelled(name, owner, answer)
            return False
        if granted:
            self.owners[name] = owner
        return bool(granted)

    def cancelled(self, name, owner, answer):
        """Give back the lock that the answer may still grant."""
        self.pool.submit(lambda: answer.result() and self.client.eval(RELEASE, 1, name, owner))

    def release(self, name):
        return self.client.eval(RELEASE, 1, name, self.owners.pop(name)) == 1


class Lock(Sound):
    leases = False

    def cancelled(self, name, owner, answer):
        pass


DEFECT = Defect(
    name="cancel-acquire-leaves-the-lock",
    family="cancellation",
    what="An acquire that is cancelled while its answer travels leaves a lock that no client has.",
    seen="redis-py 8.1.0, asyncio Lock without a timeout, its default",
    breaks="A lock that no client holds is granted.",
    checker="liveness",
    faults=("pause:one",),
)
