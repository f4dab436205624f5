"""Healing nodes after a run: what is found, what is undone, and that a server is up at the end."""

from __future__ import annotations

import pytest

from fencepost.harness.cluster import healing
from fencepost.nemesis import iptables
from fencepost.workloads.client import PROGRAM


class Node:
    """A node with a Redis server whose pid is 7, and with clients that were left behind."""

    def __init__(self, running=True, workers=(), chains=False):
        self.node = "redis-1"
        self.running, self.workers, self.chains = running, list(workers), chains
        self.ran = []

    def run(self, argv, *, timeout_s=10.0, check=True):
        self.ran.append(" ".join(argv))
        out = ""
        if argv[0] == "pgrep" and argv[-1] == PROGRAM:
            out = "\n".join(map(str, self.workers))
        elif "start" in argv:
            self.running = True
        return type("Result", (), {"code": 0 if argv[0] != "test" else 1, "out": out, "err": ""})()

    def get(self, path):
        return b"7\n"

    def state(self, pid):
        return "S" if pid == 7 and self.running else None

    def signal(self, pid, number):
        if pid in self.workers:
            self.workers.remove(pid)
        elif pid == 7:
            there, self.running = self.running, False
            return there
        return True


@pytest.fixture(autouse=True)
def chains(monkeypatch):
    monkeypatch.setattr(iptables, "there", lambda node: node.chains)
    monkeypatch.setattr(iptables, "clear", lambda node: setattr(node, "chains", False))


def cluster(**nodes):
    names = {name.replace("_", "-"): node for name, node in nodes.items()}
    return type("Cluster", (), {"remote": lambda self, name: names[name]})(), list(names)


def test_nodes_that_nothing_ails_are_left_alone():
    assert healing.heal(*cluster(redis_1=Node(), redis_2=Node())) == []
    assert healing.amiss(*cluster(redis_1=Node())) == []


def test_everything_that_is_amiss_is_said_first_and_changed_by_healing_alone():
    node = Node(running=False, workers=[31, 32], chains=True)
    found = cluster(redis_1=node)
    for _ in range(2):
        assert healing.amiss(*found) == [
            "redis-1: a client was left behind (pid 31)",
            "redis-1: a client was left behind (pid 32)",
            "redis-1: fencepost's iptables chains are there",
            "redis-1: its server is down",
        ]
    assert healing.heal(*found) == [
        "redis-1: ended a client that was left behind (pid 31)",
        "redis-1: ended a client that was left behind (pid 32)",
        "redis-1: took fencepost's iptables chains away",
        "redis-1: started its server, which was down",
    ]
    assert node.running and not node.workers and not node.chains
    assert healing.heal(*found) == []


def test_a_machine_that_stays_keeps_neither_server_nor_data_nor_rules_nor_files():
    node = Node(chains=True)
    healing.leave(node, "redis-1")
    assert not node.running and not node.chains
    assert any("wipe redis" in command for command in node.ran)
    (removed,) = [command for command in node.ran if command.startswith("rm -rf")]
    assert "/run/fencepost/clock" in removed and "/run/fencepost/server.pid" in removed
