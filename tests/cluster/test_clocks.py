"""A skewed server of any kind shows the skew on its own clock."""

from __future__ import annotations

import json
import time

import pytest

from fencepost.harness.cluster.healing import heal
from fencepost.harness.servers.wait import until
from fencepost.nemesis import clock
from fencepost.nemesis.clock import Clock
from fencepost.nemesis.nemesis import Fault
from tests.cluster.conftest import emptied

ETCD = [f"etcd-{n}" for n in (1, 2, 3)]
ZOOKEEPER = [f"zookeeper-{n}" for n in (1, 2, 3)]
NODES = SERVERS = [*ETCD, *ZOOKEEPER, "redis-1"]
BOTH = ["wall", "monotonic"]


class Site:
    """Provide the servers alone, as far as a clock fault uses them."""

    clients = ()

    def __init__(self, cluster):
        self.cluster = cluster
        self.servers = NODES
        self._servers = {
            node: server
            for lock in ("etcd", "zookeeper", "redis")
            for node, server in emptied(cluster, lock).of_lock.items()
        }

    def remote(self, node):
        return self.cluster.remote(node)

    def server(self, node):
        return self._servers[node]

    def leader(self):
        """Return the etcd server that leads."""
        (found,) = (node for node in ETCD if leads(self.server(node)))
        return found


def leads(server):
    status = json.loads(etcd(server, "maintenance/status", {}))
    return status.get("leader") == status["header"]["member_id"]


_POST = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], sys.argv[2].encode(), timeout=3).read().decode())
"""


def etcd(server, path, body):
    """Return the answer of etcd's JSON gateway to a request from the server's own node."""
    url = f"http://127.0.0.1:2379/v3/{path}"
    return server._remote.run(["python3", "-c", _POST, url, json.dumps(body)]).out


@pytest.fixture(scope="module")
def site(cluster):
    return Site(cluster)


@pytest.fixture
def clocks(site):
    yield Clock(site)
    heal(site.cluster, NODES)


def fault(targets, **arguments):
    return Fault("c", "clock", targets, arguments)


FAULTS = [
    fault(["redis-1"], offset_s=0.01),
    fault(["redis-1"], offset_s=-7200.0),
    fault(["redis-1"], kind="drift", rate=1.5),
    fault(["redis-1"], kind="strobe", offset_s=0.2, period_s=0.05),
    fault(["zookeeper-1"], offset_s=0.05, clocks=BOTH),
    fault(["zookeeper-2"], offset_s=3600.0, clocks=["wall"]),
    fault(["zookeeper-3"], kind="drift", rate=0.5, clocks=BOTH),
    fault(["zookeeper-1"], kind="strobe", offset_s=5.0, period_s=0.1, clocks=["wall"]),
    fault(ETCD, offset_s=30.0, clocks=BOTH),
    fault(ETCD, offset_s=-2.0, clocks=BOTH),
    fault(["etcd-2"], offset_s=0.3),
    fault(["etcd-1"], kind="drift", rate=1.2),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.targets[0]} {f.arguments}")
def test_a_clock_is_set_as_the_server_shows_and_set_right_again(clocks, fault):
    took_hold = clocks.inject(fault)
    healed = clocks.heal(fault)

    assert took_hold.proved, took_hold
    assert healed.proved, healed


def test_a_lease_of_etcd_expires_as_soon_as_its_leader_s_monotonic_clock_has_jumped(site, clocks):
    leader = site.server(site.leader())
    lease = json.loads(etcd(leader, "lease/grant", {"TTL": 600}))["ID"]
    assert clocks.inject(fault([leader.node], offset_s=700.0, clocks=["monotonic"])).proved

    def left_s():
        return int(json.loads(etcd(leader, "lease/timetolive", {"ID": lease}))["TTL"])

    assert until(lambda: left_s() < 0, 240)
    assert clocks.heal(fault([leader.node], clocks=["monotonic"])).proved
    assert leader.ready()


# Open a session of 10 s, report it, and then report the time until the server closed it.
_SESSION = """
import socket, sys, time
sys.path.insert(0, "/opt/fencepost/lib")
from fencepost.harness.servers.zookeeper import HELLO
with socket.create_connection((sys.argv[1], 2181), 15) as link:
    link.sendall(len(HELLO).to_bytes(4, "big") + HELLO)
    link.recv(4096)
    began = time.monotonic()
    print("open", flush=True)
    while link.recv(4096):
        pass
    print(time.monotonic() - began)
"""


def test_a_session_of_zookeeper_expires_as_soon_as_monotonic_clocks_have_jumped(site, clocks):
    jump = fault(ZOOKEEPER, offset_s=15.0, clocks=["monotonic"])
    session = site.remote("redis-1").spawn(["python3", "-c", _SESSION, "zookeeper-1"])
    assert session.stdout.readline() == b"open\n"
    assert clocks.inject(jump).proved
    # By a correct clock, ZooKeeper closes no session before its 10 s have passed.
    assert float(session.stdout.readline()) < 10
    assert session.wait(120) == 0
    assert clocks.heal(jump).proved
    # It is longer than a leader waits for its followers, so they elect a new one.
    for node in ZOOKEEPER:
        site.server(node).wait_ready()


def test_a_follower_of_etcd_does_not_show_its_monotonic_clock(site, clocks):
    follower = next(node for node in ETCD if node != site.leader())
    receipt = clocks.inject(fault([follower], offset_s=60.0, clocks=["monotonic"]))
    assert not receipt.proved
    assert "only etcd's leader" in receipt.how


@pytest.mark.parametrize("node", ["redis-1", "zookeeper-3", "etcd-3"])
def test_a_restarted_server_keeps_its_clock_s_offset(site, clocks, node):
    jump = fault([node], offset_s=1000.0)
    assert clocks.inject(jump).proved
    server = site.server(node)
    server.kill()
    server.start()
    server.wait_ready()

    low_s, high_s = server.look_at_clock("wall", {})

    assert low_s <= 1000 <= high_s + 0.01
    assert clocks.heal(jump).proved


def test_a_restarted_zookeeper_keeps_its_sessions_by_its_skewed_monotonic_clock(site, clocks):
    jump = fault(["zookeeper-2"], offset_s=500.0, clocks=["monotonic"])
    assert clocks.inject(jump).proved
    server = site.server("zookeeper-2")
    server.kill()
    server.start()
    server.wait_ready()

    low_s, high_s = server.look_at_clock("monotonic", {})

    assert low_s <= 500 <= high_s
    assert clocks.heal(jump).proved


def test_leftovers_of_a_killed_run_are_healed_to_the_byte(site, clocks):
    remote = site.remote("etcd-1")
    image = ["python3", "-c", "import sys; sys.path.insert(0, '/opt/fencepost/lib');"
             "from fencepost.node import image;"
             f"print(image.image({site.server('etcd-1').pid()}).content.hex())"]  # fmt: skip
    before = remote.run(image).out
    clocks.inject(fault(["etcd-1"], kind="drift", rate=0.5, clocks=BOTH))
    assert remote.run(image).out != before

    found = heal(site.cluster, ["etcd-1"])

    assert found == ["etcd-1: set the clocks of 1 process(es) right"]
    assert remote.run(image).out == before
    assert heal(site.cluster, ["etcd-1"]) == []


def test_a_server_that_died_under_a_skew_is_started_again_with_its_clock_right(site, clocks):
    clocks.inject(fault(["zookeeper-1"], offset_s=60.0))
    site.server("zookeeper-1").kill()

    heal(site.cluster, ["zookeeper-1"])

    low_s, high_s = site.server("zookeeper-1").look_at_clock("wall", {})
    assert low_s <= 0 <= high_s < 1


def test_a_server_whose_monotonic_clock_is_set_back_by_healing_is_started_again(site, clocks):
    """All its timers would expire that much too late."""
    pid = site.server("etcd-1").pid()
    clocks.inject(fault(["etcd-1"], offset_s=60.0, clocks=BOTH))

    heal(site.cluster, ["etcd-1"])

    assert site.server("etcd-1").pid() != pid
    assert heal(site.cluster, ["etcd-1"]) == []


def test_a_lease_granted_after_the_fault_expires_in_time(site, clocks):
    """A monotonic clock that goes back would extend it by the same amount."""
    jump = fault(ETCD, offset_s=20.0, clocks=BOTH)
    assert clocks.inject(jump).proved
    time.sleep(0.5)
    healed = clocks.heal(jump)
    assert healed.proved and "and stays ahead by that" in healed.how, healed
    leader = site.server(site.leader())
    lease = json.loads(etcd(leader, "lease/grant", {"TTL": 2}))["ID"]

    def lives():
        return "grantedTTL" in json.loads(etcd(leader, "lease/timetolive", {"ID": lease}))

    assert until(lambda: not lives(), 15)

    again = fault(ETCD, offset_s=5.0, clocks=BOTH)
    assert clocks.inject(again).proved
    assert clocks.heal(again).proved


def wrong_pid(site, monkeypatch):
    other = int(site.remote("redis-1").run(["pgrep", "sleep"]).out)
    monkeypatch.setattr(site.server("redis-1"), "pid", lambda: other)


def unread_file(site, monkeypatch):
    monkeypatch.setattr(type(site.server("redis-1")), "reads_clock_file", True)
    monkeypatch.setattr(clock, "CLOCK_FILE", "/run/fencepost/nobody-reads-this")


@pytest.mark.parametrize("sabotage", [wrong_pid, unread_file], ids=["wrong pid", "unread file"])
def test_a_skew_that_the_server_does_not_see_is_not_proved(site, clocks, monkeypatch, sabotage):
    sabotage(site, monkeypatch)
    assert not clocks.inject(fault(["redis-1"], offset_s=60.0)).proved
