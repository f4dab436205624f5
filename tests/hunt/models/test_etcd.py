"""The model of etcd: revisions, transactions, leases on the leader's clock, watches, elections."""

from __future__ import annotations

import json
from contextlib import nullcontext
from random import Random
from types import SimpleNamespace

import msgspec
import pytest

from fencepost.hunt.faults.registry import table
from fencepost.hunt.models.etcd.server import Cluster, EtcdServer
from fencepost.hunt.models.etcd.state import Refused, State
from fencepost.hunt.models.http import Pool
from fencepost.hunt.run import Run
from fencepost.hunt.search.draw import Drawer
from fencepost.hunt.search.search import search
from fencepost.hunt.sim.link import Dialled
from fencepost.hunt.sim.network import Network
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import MS, Node, Timer, World
from fencepost.workloads.contract.lock import Failed, Indeterminate
from fencepost.workloads.locks.etcd import EtcdLock
from fencepost.workloads.locks.etcd_session import Session
from fencepost.workloads.locks.keepalive import Keepalive
from fencepost.workloads.transport.etcd_gateway import Gateway, key_is, text

SECOND = 1000 * MS


class Site:
    """Three servers and one client, whose code `do` runs at a time."""

    def __init__(self, looks=True):
        self.world = World()
        self.network = Network(self.world, None)
        self.cluster = Cluster(self.network, looks)
        self.servers = [EtcdServer(f"etcd-{n + 1}", n, self.cluster) for n in range(3)]
        self.client = Node("client-1", 0)

    def gateway(self, first=0):
        names = [server.name for server in (*self.servers[first:], *self.servers[:first])]
        by_name = {server.name: server for server in self.servers}
        return Gateway(
            [(name, 2379) for name in names],
            1.0,
            lambda: self.world.now,
            lambda host, port: Pool(self.network, self.client, by_name[host]),
        )

    def do(self, at, work):
        self.world.start(self.client, work, at)

    def run(self, until):
        self.world.at(until, Timer(self.world.nowhere, lambda: setattr(self.world, "over", True)))
        self.world.run()
        self.world.stop()


def put(state, key, value="", **more):
    return state.execute("kv/put", {"key": text(key), "value": text(value), **more}, 0)


def test_a_change_raises_the_revision_once_and_a_key_remembers_its_own():
    state = State()
    put(state, "a")
    put(state, "a")
    ops = [{"request_put": {"key": text(key)}} for key in ("b", "c")]
    state.execute("kv/txn", {"compare": [key_is("b", 0)], "success": ops}, 0)
    assert state.revision == 4
    row = state.execute("kv/range", {"key": text("a")}, 0)["kvs"][0]
    assert (row["create_revision"], row["mod_revision"], row["version"]) == ("2", "3", "2")


def test_a_transaction_does_one_branch():
    state = State()
    body = {
        "compare": [key_is("a", 0)],
        "success": [{"request_put": {"key": text("a")}}],
        "failure": [{"request_range": {"key": text("a")}}],
    }
    assert state.execute("kv/txn", body, 0)["succeeded"] is True
    again = state.execute("kv/txn", body, 0)
    assert "succeeded" not in again
    assert again["responses"][0]["response_range"]["count"] == "1"


def test_a_lease_takes_its_keys_with_it():
    state = State()
    lease = state.execute("lease/grant", {"TTL": "2"}, 0)["ID"]
    put(state, "a", lease=lease)
    state.execute("lease/revoke", {"ID": lease}, 0)
    assert state.execute("kv/range", {"key": text("a")}, 0).get("kvs") is None
    with pytest.raises(Refused, match="lease not found"):
        put(state, "a", lease=lease)


def test_an_unsupported_request_is_refused_by_name():
    with pytest.raises(Unknown, match="maintenance/status"):
        State().execute("maintenance/status", {}, 0)


def test_a_lease_that_is_not_renewed_expires_and_wakes_its_watchers():
    site, seen = Site(), []

    def work():
        gateway = site.gateway()
        lease = gateway.grant_lease(2)
        gateway.call("kv/put", {"key": text("a"), "lease": str(lease)})
        seen.append(gateway.wait_deleted("a", 2, 5.0))
        seen.append(site.world.now)
        seen.append(gateway.lives(lease))

    site.do(0, work)
    site.run(6 * SECOND)
    deleted, at, lives = seen
    assert deleted is True
    assert lives is False
    assert 2 * SECOND <= at <= 2.6 * SECOND


def test_without_a_majority_no_request_is_answered():
    site, seen = Site(), []
    for server in site.servers[1:]:
        server.crash(power=False)

    def work():
        with pytest.raises(Indeterminate) as raised:
            site.gateway().grant_lease(2)
        seen.append(raised.value.kind)

    site.do(0, work)
    site.run(3 * SECOND)
    assert seen == ["timeout"]


def test_after_the_loss_of_its_leader_a_cluster_answers_again_and_its_leases_restart():
    site, seen = Site(), []

    def work():
        gateway = site.gateway(first=1)
        lease = gateway.grant_lease(2)
        site.world.at(1 * SECOND, Timer(site.world.nowhere, lambda: site.servers[0].crash(False)))
        site.world.sleep(3 * SECOND)
        seen.append(gateway.lives(lease))
        site.world.sleep(2 * SECOND)
        seen.append(gateway.lives(lease))

    site.do(0, work)
    site.run(8 * SECOND)
    # Without the election it would have ended at 2 s.
    assert seen == [True, False]


def test_a_server_that_is_down_refuses_and_the_next_is_asked():
    site, seen = Site(), []
    site.servers[1].crash(power=False)

    def work():
        seen.append(site.gateway(first=1).created("a"))
        for server in site.servers:
            server.up = False
        with pytest.raises(Failed) as raised:
            site.gateway().grant_lease(2)
        seen.append(raised.value.kind)

    site.do(0, work)
    site.run(3 * SECOND)
    assert seen == [0, "unreachable"]


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("lock", "faults"),
    [("etcd", "pause,partition,packet,kill"), ("chubby", "partition,packet,kill")],
)
def test_locks_on_etcd_have_no_counterexample(setting, lock, faults):
    tried = search(setting(lock, faults), 1, 120, 1, most=200)
    assert tried.found is None
    assert tried.schedules == 200


def test_a_lease_that_ends_while_it_is_opened_is_not_taken_for_lease_zero(monkeypatch):
    """Lease 0 is none: a key that is put with it would exist for ever."""
    monkeypatch.setattr(Gateway, "grant_lease", lambda self, ttl_s: 77)
    monkeypatch.setattr(Keepalive, "watch", lambda self, secret, *_: self._lost(secret, "late"))
    env = SimpleNamespace(
        now=lambda: 0,
        random=Random(1),
        address=lambda node: (node, 0),
        pool=lambda host, port: None,
        mutex=nullcontext,
        renewed=None,
        lost=None,
    )
    session = Session(env, ["etcd-1"], 1.0)
    assert session.open(2 * SECOND) == 77
    assert session.lease == 0


def test_a_recipe_without_waiting_is_detected(setting, monkeypatch):
    monkeypatch.setattr(Gateway, "created", lambda self, key: 2)
    monkeypatch.setattr("fencepost.workloads.locks.etcd.EtcdLock._wait", lambda *_: 0)
    monkeypatch.setattr(
        "fencepost.workloads.locks.etcd.EtcdLock._enqueue", lambda self, key, lease: 2
    )
    tried = search(setting("etcd", "partition"), 1, 30, 1, most=50)
    assert tried.found is not None


def test_a_grant_after_a_release_that_did_not_reach_etcd_has_a_token_of_its_own():
    site, tokens = Site(), []
    by_name = {server.name: server for server in site.servers}
    everywhere = {(site.client.index, server.index) for server in site.servers}

    def work():
        env = SimpleNamespace(
            now=lambda: site.world.now,
            sleep=lambda s: site.world.sleep(round(s * 1e9)),
            random=Random(1),
            address=lambda node: (node, 0),
            pool=lambda host, port: Pool(site.network, site.client, by_name[host]),
            mutex=nullcontext,
            background=lambda work: None,
            failpoint=lambda name: None,
            renewed=None,
            lost=None,
        )
        lock = EtcdLock(env, list(by_name), {"wait_ms": 1000, "node_timeout_ms": 100})
        grant = lock.acquire("orders", 10 * SECOND)
        site.network.requests_cut |= everywhere
        with pytest.raises(Failed, match="no answer to connect"):
            lock.release(grant)
        site.network.requests_cut -= everywhere
        tokens.extend((grant.token, lock.acquire("orders", 10 * SECOND).token))

    site.do(0, work)
    site.run(5 * SECOND)
    first, second = tokens
    assert first < second


# The lock service.


def leases(state, *numbers):
    for number in numbers:
        state.execute("lease/grant", {"TTL": "5", "ID": str(number)}, 0)


class Asking:
    """Clients that send requests to a site's lock service, and their answers, by lease."""

    def __init__(self, site):
        self.site = site
        self.told = {}
        self.links = {}

    def ask(self, at, lease, server=0, wait=5 * SECOND):
        def work():
            one = self.site.servers[server]
            link = Dialled(self.site.network, self.site.client, one, SECOND, wait)
            self.links[lease] = link
            try:
                link.send("lock/lock", json.dumps({"name": text("a"), "lease": str(lease)}))
                answer = link.receive()
                self.told[lease] = self.site.world.now, *answer
            except Indeterminate as error:
                self.told[lease] = self.site.world.now, error.text, b""
            finally:
                link.close()

        self.site.do(at, work)

    def answered(self, lease):
        time, status, body = self.told[lease]
        return time // SECOND, status, json.loads(body)


@pytest.fixture
def asking():
    site = Site()
    leases(site.cluster.state, 11, 12, 13)
    return Asking(site)


def test_the_lock_service_grants_in_the_order_of_asking(asking):
    cluster = asking.site.cluster
    for at, lease in ((0, 11), (MS, 12), (2 * MS, 13)):
        asking.ask(at, lease, server=lease - 11)
    cluster.world.at(SECOND, Timer(cluster.world.nowhere, lambda: unlock_by(cluster, "a/b")))
    asking.site.run(1400 * MS)
    assert asking.answered(11)[1:] == (200, {"header": {"revision": "2"}, "key": text("a/b")})
    assert asking.answered(12)[:2] == (1, 200)
    assert 13 not in asking.told


def unlock_by(cluster, key):
    cluster.answer("lock/unlock", msgspec.json.encode({"key": text(key)}))


def test_a_request_with_an_unknown_lease_is_refused(asking):
    asking.ask(0, 99)
    asking.site.run(SECOND)
    assert "lease not found" in asking.answered(99)[2]["message"]


@pytest.mark.parametrize(("looks", "status"), [(True, 500), (False, 200)])
def test_a_waiter_whose_lease_has_ended_is_refused_but_by_etcd_3_4(looks, status):
    site = Site(looks)
    leases(site.cluster.state, 11, 12)
    asking = Asking(site)
    asking.ask(0, 11)
    asking.ask(MS, 12)
    world, state = site.world, site.cluster.state
    world.at(100 * MS, Timer(world.nowhere, lambda: state.revoke(12)))
    world.at(200 * MS, Timer(world.nowhere, lambda: unlock_by(site.cluster, "a/b")))
    site.run(300 * MS)
    _, said, answer = asking.answered(12)
    assert said == status
    assert answer.get("message", "") == ("mutex: session is expired" if looks else "")


def test_a_client_that_closes_its_connection_leaves_the_queue(asking):
    asking.ask(0, 11)
    asking.ask(MS, 12, wait=100 * MS)
    asking.site.run(400 * MS)
    assert sorted(asking.site.cluster.state.keys) == [b"a/b"]
    assert "no answer in time" in asking.told[12][1]


def test_a_client_that_is_cut_off_then_stays_in_the_queue_until_its_server_notices(asking):
    site = asking.site
    asking.ask(0, 11)
    asking.ask(MS, 12, server=1, wait=100 * MS)
    world, cuts = site.world, site.network.requests_cut
    world.at(50 * MS, Timer(world.nowhere, lambda: cuts.add((0, 1))))
    seen = []
    world.at(900 * MS, Timer(world.nowhere, lambda: seen.append(sorted(site.cluster.state.keys))))
    world.at(950 * MS, Timer(world.nowhere, cuts.clear))
    site.run(1600 * MS)
    assert seen == [[b"a/b", b"a/c"]]
    assert sorted(site.cluster.state.keys) == [b"a/b"]


def test_a_server_that_crashes_answers_no_request_and_leaves_its_clients_keys(asking):
    site = asking.site
    asking.ask(0, 11)
    asking.ask(MS, 12, server=1)
    site.world.at(50 * MS, Timer(site.world.nowhere, lambda: site.servers[1].crash(False)))
    site.world.at(100 * MS, Timer(site.world.nowhere, lambda: unlock_by(site.cluster, "a/b")))
    site.run(400 * MS)
    assert "connection was closed" in asking.told[12][1] or "reset" in asking.told[12][1]
    assert sorted(site.cluster.state.keys) == [b"a/c"]


def test_the_lock_service_of_3_4_has_a_counterexample_and_that_of_3_5_has_not(setting):
    """etcd issue 11456, from no hint."""
    tried = search(setting("etcd-lock-api", "pause"), 1, 60, processes=1, most=300)
    assert tried.found is None and tried.schedules >= 300
    old = search(setting("etcd-lock-api", "pause", server=["etcd=3.4"]), 1, 60, processes=1)
    assert old.found is not None
    assert "linearizable" in old.found[1]


# Chubby, whose sequencer the resource checks.


@pytest.mark.slow
def test_chubby_leaves_nothing_behind_that_locks_everybody_out(setting):
    for faults in ("pause", "partition,packet,kill"):
        one = setting("chubby", faults, guard="check-sequencer")
        assert search(one, 1, 60, processes=1, most=400).found is None


def test_a_resource_that_asks_the_lock_service_refuses_a_hold_that_is_gone(setting):
    one = setting("chubby", "pause", "resource", guard="check-sequencer")
    drawer, actions = Drawer(one, table(one), 300, {}), table(one)
    random, refused, stored = Random(3), 0, 0
    for _ in range(60):
        schedule, aims = drawer.draw(random)
        for row in Run(one, schedule, actions, aims=aims).execute().rows:
            if row[3] == "write":
                refused += row[2] == "fail" and "is gone" in row[5].text
                stored += row[2] == "ok"
    assert refused > 0 and stored > 0
