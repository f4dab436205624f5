"""Servers that leave and join: etcd's members, a replicated Redis; and failed changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from fencepost.nemesis import membership
from fencepost.nemesis.failover import Failover
from fencepost.nemesis.membership import Membership
from fencepost.nemesis.nemesis import Fault
from tests.nemesis.site_in_memory import Result

ETCD = [f"etcd-{n}" for n in (1, 2, 3)]


@dataclass
class Server:
    """Remote and server of one node. `deaf`: disabled effects."""

    name: str
    site: Site
    alive: bool = True
    role: str = "slave"
    wiped: int = 0
    joined: list[dict[str, str]] = field(default_factory=list)

    @property
    def removed_by_others(self) -> bool:
        return self.name.startswith("etcd")

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, check: bool = True) -> Result:
        if not self.alive:
            return Result(code=1, err="connection refused")
        if argv[:2] == ["redis-cli", "replicaof"]:
            self.role = self.role if "promote" in self.site.deaf else "master"
            return Result("OK")
        if "redis-cli" in argv:
            return Result(f"{self.role}\n0")
        return self.site.etcdctl(argv[argv.index("member") + 1 :])

    def state(self, pid: int) -> str | None:
        return "S" if self.alive else None

    def pid(self) -> int | None:
        return 42

    def identity(self) -> str:
        return f"member {self.site.members.get(self.name, '')}"

    def kill(self) -> int | None:
        self.alive = self.alive and "kill" in self.site.deaf
        return 42

    def wipe(self) -> None:
        self.wiped += 1

    def start(self, **changed: str) -> None:
        self.alive = True
        self.joined.append(changed)
        if "PRIMARY" in changed and "follow" not in self.site.deaf:
            self.role = "slave"

    def wait_ready(self, timeout_s: float = 30.0) -> None: ...


class Site:
    clients = ()

    def __init__(self, servers: list[str]) -> None:
        self.servers = servers
        self.deaf: set[str] = set()
        self.unhealthy = 0
        self.members = {name: f"id{place}" for place, name in enumerate(servers)}
        self.nodes = {name: Server(name, self) for name in servers}

    def remote(self, node):
        return self.nodes[node]

    server = own_server = remote

    def address(self, node):
        return f"10.0.0.{self.servers.index(node) + 1}"

    def etcdctl(self, words: Sequence[str]) -> Result:
        verb, *rest = words
        if verb != "list" and self.unhealthy:
            self.unhealthy -= 1
            return Result(code=1, err="warn\nError: etcdserver: unhealthy cluster")
        if verb == "remove" and "remove" not in self.deaf:
            gone = next(name for name, member in self.members.items() if member == rest[0])
            del self.members[gone]
        if verb == "add" and rest[0] in self.members:
            return Result(code=1, err="Error: etcdserver: Peer URLs already exists")
        if verb == "add" and "add" not in self.deaf:
            self.members[rest[0]] = f"id{len(self.members)}-again"
        rows = (
            f"{member}, started, {name}, http://{name}:2380, http://{name}:2379, false"
            for name, member in self.members.items()
        )
        return Result("\n".join(rows))


@pytest.fixture
def etcd():
    return Site(ETCD)


def fault(*targets):
    return Fault("f", "x", list(targets))


@pytest.mark.parametrize("heard", [True, False])
def test_a_member_whose_adding_was_not_answered_in_time_is_looked_for_and_added(etcd, heard):
    """Raise an error before or after the request took effect."""
    nemesis = Membership(etcd)
    nemesis.inject(fault("etcd-2"))
    answering, asked = etcd.etcdctl, []

    def slow(words):
        if words[0] == "add":
            asked.append(words)
            if len(asked) <= len(ETCD):
                if heard and len(asked) == 1:
                    answering(words)
                return Result(code=1, err="Error: context deadline exceeded")
        return answering(words)

    etcd.etcdctl = slow
    assert nemesis.heal(fault("etcd-2")).proved
    assert len(asked) >= 2
    assert list(etcd.members) == ["etcd-1", "etcd-3", "etcd-2"]


def test_a_member_of_etcd_is_removed_and_another_one_joins_in_its_place(etcd):
    nemesis = Membership(etcd)
    receipt = nemesis.inject(fault("etcd-2"))
    assert receipt.proved
    assert receipt.data["members"] == ["etcd-1", "etcd-3"]
    healed = nemesis.heal(fault("etcd-2"))
    assert healed.proved
    assert healed.how == "etcd-2 serves again: it was member id1, and is member id2-again"
    assert etcd.nodes["etcd-2"].joined == [{"JOIN": "existing"}]
    assert etcd.nodes["etcd-2"].wiped == 1


def test_a_cluster_that_is_not_healthy_yet_is_asked_again(etcd, monkeypatch):
    monkeypatch.setattr(membership.time, "sleep", lambda s: None)
    etcd.unhealthy = 5
    assert Membership(etcd).inject(fault("etcd-2")).proved


def test_where_no_other_member_answers_nothing_is_removed_in_words(etcd):
    etcd.nodes["etcd-1"].alive = etcd.nodes["etcd-3"].alive = False
    with pytest.raises(RuntimeError, match="etcdctl member list: connection refused"):
        Membership(etcd).inject(fault("etcd-2"))


@pytest.mark.parametrize("deaf", ["remove", "kill"])
def test_a_member_that_stays_is_not_called_gone(etcd, deaf):
    etcd.deaf.add(deaf)
    assert not Membership(etcd).inject(fault("etcd-2")).proved


def test_a_server_that_returns_with_its_data_is_not_called_another(etcd):
    nemesis = Membership(etcd)
    etcd.deaf.add("remove")
    nemesis.inject(fault("etcd-2"))
    assert not nemesis.heal(fault("etcd-2")).proved


@pytest.fixture
def redis():
    site = Site(["redis-1", "redis-2"])
    site.nodes["redis-1"].role = "master"
    return site


def test_a_failover_is_proved_by_the_role_that_the_replica_says_it_has(redis):
    nemesis = Failover(redis)
    receipt = nemesis.inject(fault("redis-1", "redis-2"))
    assert receipt.proved
    assert receipt.data["primary"] == "redis-2"
    assert nemesis.heal(fault()).proved
    assert redis.nodes["redis-1"].joined == [{"PRIMARY": "10.0.0.2"}]


@pytest.mark.parametrize("deaf", ["promote", "kill"])
def test_a_primary_that_lives_or_a_replica_that_was_not_promoted_is_no_failover(redis, deaf):
    redis.deaf.add(deaf)
    assert not Failover(redis).inject(fault()).proved


def test_an_old_primary_that_does_not_follow_is_not_called_healed(redis):
    nemesis = Failover(redis)
    nemesis.inject(fault())
    redis.deaf.add("follow")
    assert not nemesis.heal(fault()).proved
