"""A release that forgets its owner's value before it asks, so that a retry lacks it."""

import time
import uuid

import redis
from _lease import RELEASE, Lease

from fencepost.workloads.contract.defect import Defect


class Sound(Lease):
    def acquire(self, name, ttl):
        self.owner = uuid.uuid4().hex
        return super().acquire(name, ttl)

    def release(self, name):
        try:
            return self.ask(name)
        except redis.RedisError:
            time.sleep(0.1)
            return self.ask(name)

    def ask(self, name):
        self.client.eval(RELEASE, 1, name, self.owner)
        self.owner = ""
        return True


class Lock(Sound):
    def ask(self, name):
        owner, self.owner = self.owner, ""
        self.client.eval(RELEASE, 1, name, owner)
        return True


DEFECT = Defect(
    name="release-forgets-before-it-asks",
    family="release",
    what="A release forgets the owner's value before its request, so that a retry lacks it.",
    seen="redis-py 8.1 and valkey-py 6.2; redis-py pull request 4258",
    breaks="Only a lock that is held is refused.",
    checker="liveness",
    faults=("packet/loss", "partition:client"),
    promises=("true_refusals",),
    clients=2,
)
