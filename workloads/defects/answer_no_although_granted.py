"""An acquire that its connection sends again after a timeout, and that finds its own key."""

import uuid

import redis
from _lease import Lease as Sound
from redis.backoff import NoBackoff
from redis.retry import Retry

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    def __init__(self, servers):
        super().__init__(servers)
        retry = Retry(NoBackoff(), 10)
        self.client = redis.Redis(*servers[0], socket_timeout=0.5, retry=retry)

    def acquire(self, name, ttl):
        self.owner = uuid.uuid4().hex  # a retried release that arrives late ends no later hold
        return super().acquire(name, ttl)


DEFECT = Defect(
    name="answer-no-although-granted",
    family="answers",
    what="A connection retries a request by itself, and is refused by the key that it has set.",
    seen="redis-py 8.1: Lock.acquire on a connection with its default retries",
    breaks="A refusal is certain, and only a lock that is held is refused.",
    checker="liveness",
    faults=("pause:one", "packet/loss"),
    promises=("true_refusals",),
    clients=2,
)
