"""A release on another session of a pool than the one that holds the lock."""

import itertools
import threading

import redis
from _lease import EXTEND, RELEASE, Lease

from fencepost.workloads.contract.defect import Defect


class Session(Lease):
    """Its lock lives as long as itself: a thread renews all that it has locked."""

    def __init__(self, servers):
        super().__init__(servers)
        self.closed = threading.Event()
        self.leases = {}
        threading.Thread(target=self.live, daemon=True).start()

    def live(self):
        while not self.closed.wait(0.25):
            for name, ttl in list(self.leases.items()):
                try:
                    self.client.eval(EXTEND, 1, name, self.owner, int(ttl * 1000))
                except redis.RedisError:
                    continue

    def acquire(self, name, ttl):
        granted = super().acquire(name, ttl)
        if granted:
            self.leases[name] = ttl
        return granted

    def release(self, name):
        if self.client.eval(RELEASE, 1, name, self.owner) == 0:
            return False
        del self.leases[name]
        return True

    def close(self):
        self.closed.set()
        super().close()


class Sound:
    def __init__(self, servers):
        self.sessions = [Session(servers) for _ in range(2)]
        self.turn = itertools.cycle(self.sessions)

    def acquire(self, name, ttl):
        self.session = next(self.turn)
        return self.session.acquire(name, ttl)

    def release(self, name):
        return self.session.release(name)

    def close(self):
        for session in self.sessions:
            session.close()


class Lock(Sound):
    def release(self, name):
        next(self.turn).release(name)


DEFECT = Defect(
    name="release-on-another-session",
    family="release",
    what="A pool sends the release on a session that does not hold the lock, which has no effect.",
    seen="PostgreSQL's advisory locks through PgBouncer's transaction pooling; authentik 23876",
    breaks="A released lock is free.",
    checker="liveness",
)
