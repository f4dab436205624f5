"""Faults of a server's machine on real servers: power, disk, CPU, and replacement."""

from __future__ import annotations

import pytest

from fencepost.nemesis import disk
from fencepost.nemesis.nemesis import Fault
from tests.cluster.conftest import Bench

KINDS = ("redis", "zookeeper", "etcd")
SERVERS = ["redis-1", *(f"{kind}-{n}" for kind in KINDS[1:] for n in (1, 2, 3))]
FAMILIES = ("power", "disk", "cpu", "membership")
CREATE = """
import sys
from kazoo.client import KazooClient
client = KazooClient(hosts=sys.argv[1])
client.start(20)
if sys.argv[2] == "set":
    client.create("/kept", b"yes")
else:
    client.sync("/")
    print(client.get("/kept")[0].decode())
"""
# It prints writes of the second of the last sync, after that sync; then the server was paused, so
# that no other sync happened. On a busy machine this sometimes takes more than a second.
ANSWERED = """
sync_is_over() { ! redis-cli info persistence | grep -q 'aof_pending_bio_fsync:[1-9]'; }
for try in $(seq 100); do
  printf -v rest %09d $((1000000000 - 10#$(date +%N)))
  sleep 0.$rest
  sleep 0.2  # Redis looks at its clock ten times a second
  second=$(date +%s)
  redis-cli set first $try > /dev/null
  until sync_is_over; do :; done
  redis-cli set last $try > /dev/null
  kill -STOP $1
  [ $(date +%s) = $second ] && echo $try && exit
  kill -CONT $1
done
exit 1
"""


@pytest.fixture
def bench(cluster, tmp_path):
    made = []

    def make(lock="redis", **spec):
        made.append(Bench(cluster, tmp_path, lock, nemesis=FAMILIES, concurrency=2, **spec))
        return made[-1]

    yield make
    for one in made:
        one.close()


def fault(family, *targets, **arguments):
    return Fault(family, family, list(targets), arguments)


@pytest.mark.parametrize("lock", KINDS)
def test_each_machine_fault_hits_each_kind_of_server_and_is_healed_with_its_receipt(bench, lock):
    found = bench(lock, persistence="always")
    node = found.spec.servers[0]
    for family in FAMILIES:
        injected = found.director.inject(fault(family, node))
        assert injected.proved, injected
        healed = found.director.heal(family)
        assert healed.proved, healed
    assert found.judge().valid is True


def no_loss(found, monkeypatch):
    run = type(found.site.remote("redis-1")).run
    lost = '{"bytes": 0, "files": 0, "names": 0}'

    def keep(self, argv, **options):
        done = run(
            self, ["true"] if argv == ["fencepost-node", "lazy", "lose"] else argv, **options
        )
        return type(done)(0, lost, "") if argv == ["fencepost-node", "lazy", "lose"] else done

    monkeypatch.setattr(type(found.site.remote("redis-1")), "run", keep)


def no_filler(found, monkeypatch):
    monkeypatch.setattr(disk, "_FILL", "true")


def another_pid(found, monkeypatch):
    """The quota is for a process that is not the server's, and is observed there."""
    run = type(found.site.remote("redis-1")).run

    def aside(self, argv, **options):
        if argv[1:3] == ["cpu", "limit"]:
            return run(self, ["fencepost-node", "cpu", "show", argv[3]], **options)
        return run(self, argv, **options)

    monkeypatch.setattr(type(found.site.remote("redis-1")), "run", aside)


def no_kill(found, monkeypatch):
    monkeypatch.setattr(found.site.server("redis-1"), "kill", lambda: None)
    monkeypatch.setattr(found.site.server("redis-1"), "wipe", lambda: None)


@pytest.mark.parametrize(
    ("family", "sabotage"),
    [("power", no_loss), ("disk", no_filler), ("cpu", another_pid), ("membership", no_kill)],
)
def test_a_fault_without_effect_makes_the_run_unknown(bench, monkeypatch, family, sabotage):
    found = bench()
    sabotage(found, monkeypatch)
    receipt = found.director.inject(fault(family, "redis-1"))
    monkeypatch.undo()
    found.director.heal(family)

    assert not receipt.proved, receipt
    assert found.judge().valid == "unknown"


@pytest.mark.parametrize(
    ("persistence", "family", "kept"),
    [
        ("everysec", "kill", True),
        ("everysec", "power", False),
        ("always", "power", True),
        ("none", "kill", False),
    ],
)
def test_answers_of_redis_survive_a_power_loss_by_its_sync_policy(bench, persistence, family, kept):
    """Redis syncs at most once a second: the first write of a second, and not the later ones."""
    found = bench(persistence=persistence)
    written = found.run(
        "redis-1", "bash", "-c", ANSWERED, "-", str(found.site.server("redis-1").pid())
    )
    assert found.director.inject(fault(family, "redis-1")).proved
    assert found.director.heal(family).proved
    assert (found.run("redis-1", "redis-cli", "get", "last") == written) is kept


def test_writes_that_etcd_acknowledged_survive_the_power_loss_of_all_servers(bench):
    found = bench("etcd")
    servers = found.spec.servers
    assert found.run(servers[0], "env", "ETCDCTL_API=3", "etcdctl", "put", "kept", "yes") == "OK"
    assert found.director.inject(fault("power", *servers)).proved
    assert found.director.heal("power").proved
    get = ("env", "ETCDCTL_API=3", "etcdctl", "get", "kept", "--print-value-only")
    assert found.run(servers[1], *get) == "yes"


def test_writes_that_zookeeper_acknowledged_survive_the_power_loss_of_all_servers(bench):
    found = bench("zookeeper")
    servers = found.spec.servers
    hosts = ",".join(found.site.address(node) for node in servers)
    kazoo = ("/opt/fencepost/client/bin/python", "-c", CREATE, hosts)
    found.run("client-1", *kazoo, "set")
    assert found.director.inject(fault("power", *servers)).proved
    assert found.director.heal("power").proved
    assert found.run("client-1", *kazoo, "get") == "yes"


def test_the_leader_is_determined_when_the_fault_starts(bench):
    found = bench("etcd")
    leader = found.site.primary()
    assert leader in found.spec.servers
    receipt = found.director.inject(fault("kill", "primary"))
    assert receipt.proved and f"on {leader} is gone" in receipt.how
    assert found.director.heal("kill").proved
    assert found.site.primary() is not None
