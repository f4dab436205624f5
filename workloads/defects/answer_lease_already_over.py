"""A client that looks for its answer so rarely that the lease in it has expired."""

import time
from concurrent.futures import ThreadPoolExecutor

from _lease import Lease

import fencepost
from fencepost.workloads.contract.defect import Defect


class Sound(Lease):
    looks = 20  # in a TTL

    def __init__(self, servers):
        super().__init__(servers)
        self.pool = ThreadPoolExecutor(1)

    def acquire(self, name, ttl):
        asked = time.monotonic()
        answer = self.pool.submit(super().acquire, name, ttl)
        while True:
            time.sleep(ttl / self.looks)
            if answer.done():
                break
        if not answer.result():
            return False
        if self.too_late(asked + ttl):
            self.release(name)
            return False
        return fencepost.Grant(deadline=asked + ttl)

    def too_late(self, deadline):
        return time.monotonic() >= deadline


class Lock(Sound):
    looks = 0.8

    def too_late(self, deadline):
        return False


DEFECT = Defect(
    name="answer-lease-already-over",
    family="answers",
    what="A client that looks for its answer after its TTL returns a lease that has expired.",
    seen="antirez (2016) on Redlock: the time that acquiring took has to be compared with the TTL",
    breaks="A grant is handed out while its lease runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
)
