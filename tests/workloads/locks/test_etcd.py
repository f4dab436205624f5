"""etcd's recipe: a client that gives up an attempt deletes the key of this attempt only."""

from __future__ import annotations

import pytest

from fencepost.workloads.contract.lock import Failed, Indeterminate
from fencepost.workloads.locks import etcd

TTL = 2_000_000_000


class Gateway:
    """An etcd in which another client holds the lock. `lost`: no answer to the first request comes;
    `created_at`: the revision of the client's key."""

    def __init__(self, created_at, lost=False):
        self.created_at, self.lost = created_at, lost
        self.deleted = []

    def ask(self, path, body):
        if path == "kv/range":
            self.world.now += TTL
            return {"kvs": [{"key": "b3RoZXI="}], "header": {"revision": str(self.created_at)}}
        assert path == "kv/txn", "keys are deleted by their revisions only"
        if self.lost:
            raise Indeterminate("timeout", "no answer in time")
        return {"succeeded": True, "header": {"revision": str(self.created_at)}}

    def created(self, key):
        return self.created_at

    def leave(self, key, create_revision):
        self.deleted.append((key, create_revision))


@pytest.fixture
def waits(world):
    """Return the keys that a client deletes if it is not granted the lock."""

    def give_up(gateway):
        options = etcd.LOCK.read_options({"wait_ms": "1"})
        lock = etcd.EtcdLock(world.env(), ["etcd-1"], options)
        lock._gateway = gateway
        gateway.world = world
        lock._session.open = lambda ttl_ns: 15
        with pytest.raises(Failed) as error:
            lock.acquire("orders", TTL)
        assert error.value.kind == "not-granted"
        return gateway.deleted

    return give_up


def test_a_client_that_gives_up_deletes_the_key_of_this_attempt_only(waits):
    assert waits(Gateway(7)) == [("fencepost/lock/orders/f", 7)]


def test_a_client_that_does_not_know_its_key_s_revision_asks_for_it(waits):
    assert waits(Gateway(9, lost=True)) == [("fencepost/lock/orders/f", 9)]


def test_a_client_without_a_key_deletes_nothing(waits):
    assert waits(Gateway(0, lost=True)) == []
