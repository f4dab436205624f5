"""The lock service of etcd: when its client reports that the lease of a request has expired."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest

from fencepost.workloads.contract.lock import Failed
from fencepost.workloads.locks import etcd_lock_api

OLD, NEW = 7, 8


class Asked:
    """A link to a server that answers a request for the lock with `answer`; first, while the
    request waits, `meanwhile` is called."""

    def __init__(self, meanwhile, answer):
        self._meanwhile, self._answer = meanwhile, answer

    def send(self, *command):
        pass

    def receive(self):
        self._meanwhile()
        return self._answer

    def close(self):
        pass


class Silent(Asked):
    """A link to a server that cannot be reached."""

    def __init__(self):
        pass

    def send(self, *command):
        raise Failed("unreachable", "no answer to connect")


EXPIRED = ("expired", "", "etcd says that lease 8 is gone")


@pytest.fixture
def lock(world):
    """Return a lock whose request waits with a lease, while `over` says that one has expired."""

    def make(waits_with, over, lives=False, status=200):
        key = base64.b64encode(b"fencepost/orders/8").decode()
        body = {"key": key} if status == 200 else {"error": "session is expired"}
        link = Asked(lambda: made._over(over), (status, json.dumps(body).encode()))
        env = replace(world.env(), dial=lambda *_: link)
        options = etcd_lock_api.LOCK.read_options({})
        made = etcd_lock_api.EtcdLockApi(env, ["etcd-1"], options)
        made._session.open = lambda ttl_ns: waits_with
        made._gateway.lives = lambda lease: lives
        return made

    return make


def test_a_request_whose_lease_has_expired_is_reported_while_it_waits(lock, world):
    lock(waits_with=NEW, over=NEW).acquire("orders", 2_000_000_000)
    assert world.said == [EXPIRED]


def test_a_request_with_a_new_lease_is_not_blamed_for_the_end_of_the_old_one(lock, world):
    lock(waits_with=NEW, over=OLD).acquire("orders", 2_000_000_000)
    assert world.said == []


def test_a_lease_that_etcd_still_has_is_not_called_expired(lock, world):
    lock(waits_with=NEW, over=NEW, lives=True).acquire("orders", 2_000_000_000)
    assert world.said == []


@pytest.mark.parametrize("status", [200, 500])
def test_an_answered_request_waits_no_more(lock, world, status):
    one = lock(waits_with=NEW, over=OLD, status=status)
    try:
        one.acquire("orders", 2_000_000_000)
    except Failed as error:
        assert status == 500 and error.kind == "not-granted"
    one._over(NEW)
    assert world.said == []


def test_a_client_with_a_server_of_its_own_asks_no_other(world):
    options = etcd_lock_api.LOCK.read_options({"node": "own"})
    lock = etcd_lock_api.EtcdLockApi(world.env(), ["etcd-1", "etcd-2", "etcd-3"], options)
    assert len(lock._nodes) == 1


def test_a_client_asks_the_next_server_if_one_cannot_be_reached(lock, world):
    one = lock(waits_with=NEW, over=OLD)
    one._nodes = ["etcd-1", "etcd-2", "etcd-3"]
    answers, asked = one._env.dial, []

    def dial(scheme, host, *rest):
        asked.append(host)
        return answers() if len(asked) == 3 else Silent()

    one._env = replace(one._env, dial=dial)
    assert one.acquire("orders", 2_000_000_000).name == "orders"
    assert len(set(asked)) == 3


def test_a_lock_that_no_server_can_be_asked_for_is_unreachable(lock):
    one = lock(waits_with=NEW, over=OLD)
    one._env = replace(one._env, dial=lambda *_: Silent())
    with pytest.raises(Failed, match="no answer to connect") as error:
        one.acquire("orders", 2_000_000_000)
    assert error.value.kind == "unreachable"
