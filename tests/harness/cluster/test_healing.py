"""Healing detects and undoes the leftovers of a run, and ends with a server that is up."""

from __future__ import annotations

import json
import signal
import sys
from importlib.metadata import EntryPoint

import pytest

from fencepost import registry
from fencepost.harness.cluster import healing, provision
from fencepost.harness.command import app
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.servers.server import Server
from fencepost.nemesis import iptables
from fencepost.nemesis.families import FAMILIES
from fencepost.node.places import PID_FILE
from tests.harness.memory import Cluster


class Node:
    """A node with a Redis server whose pid is 7, and with clients that a run left."""

    def __init__(self, running=True, workers=(), chains=False):
        self.node = "redis-1"
        self.running, self.workers, self.chains = running, list(workers), chains
        self.ran = []

    def run(self, argv, *, timeout_s=10.0, check=True):
        self.ran.append(" ".join(argv))
        out = ""
        if argv[1:] == ["process", "marked", "client"]:
            out = json.dumps([{"pid": pid, "started": f"{pid}@1"} for pid in self.workers])
        elif "start" in argv:
            self.running = True
        return type("Result", (), {"code": 0 if argv[0] != "test" else 1, "out": out, "err": ""})()

    def get(self, path):
        return b"7 7@1\n"

    def state(self, pid, started=None):
        return "S" if (pid, started or "7@1") == (7, "7@1") and self.running else None

    def signal(self, pid, number, started):
        assert started == f"{pid}@1"
        if pid in self.workers:
            self.workers.remove(pid)
        elif pid == 7:
            there, self.running = self.running, False
            return there
        return True


@pytest.fixture(autouse=True)
def chains(monkeypatch):
    monkeypatch.setattr(iptables, "there", lambda node: getattr(node, "chains", False))
    monkeypatch.setattr(iptables, "clear", lambda node: setattr(node, "chains", False))


def cluster(**nodes):
    names = {name.replace("_", "-"): node for name, node in nodes.items()}
    return type("Cluster", (), {"remote": lambda self, name: names[name]})(), list(names)


def test_healthy_nodes_are_left_alone():
    assert healing.heal(*cluster(redis_1=Node(), redis_2=Node())) == []
    assert healing.problems(*cluster(redis_1=Node())) == []


def test_leftovers_are_listed_first_and_changed_only_by_healing():
    node = Node(running=False, workers=[31, 32], chains=True)
    found = cluster(redis_1=node)
    for _ in range(2):
        assert healing.problems(*found) == [
            "redis-1: a client was left behind (pid 31)",
            "redis-1: a client was left behind (pid 32)",
            "redis-1: fencepost's iptables chains exist",
            "redis-1: its server is down",
        ]
    assert healing.heal(*found) == [
        "redis-1: ended a client that was left behind (pid 31)",
        "redis-1: ended a client that was left behind (pid 32)",
        "redis-1: removed fencepost's iptables chains",
        "redis-1: started its server, which was down",
    ]
    assert node.running and not node.workers and not node.chains
    assert healing.heal(*found) == []


def test_a_kept_machine_keeps_no_server_data_rules_or_files():
    node = Node(chains=True)
    healing.leave(node, "redis-1")
    assert not node.running and not node.chains
    assert any("wipe redis" in command for command in node.ran)
    (removed,) = [command for command in node.ran if command.startswith("rm -rf")]
    names = ("clock", "server.pid", "zoo.cfg", "postgres")
    assert {f"/run/fencepost/{name}" for name in names} <= set(removed.split())


@pytest.mark.parametrize("dead", ["redis-1", "redis-12"])
def test_a_node_that_does_not_answer_leaves_no_other_unhealed(dead):
    memory = Cluster()
    memory.up([f"redis-{n}" for n in range(1, 13)])
    stopped = [name for name in memory.nodes if name != dead]
    for name in memory.nodes:
        (pid,) = memory.remote(name).processes
        memory.remote(name).signal(pid, signal.SIGSTOP)

    def before(call):
        if call.node == dead:
            raise RemoteError(f"{dead}: the container is not running")

    memory.before = before
    with pytest.raises(Crashed) as error:
        healing.heal(memory, memory.nodes)
    said = str(error.value)
    assert f"1 of 12 nodes could not be healed: {dead}: the container is not running" in said
    assert "fencepost cluster down" in said
    memory.before = lambda call: None
    assert [line.split(":")[0] for line in memory.left] == [dead]
    assert all(f"{name}: resumed its stopped server" in said for name in stopped)


def test_leftovers_on_the_other_nodes_are_reported_where_one_is_unreachable():
    silent, other = Node(), Node(running=False)
    silent.run = lambda *_, **__: (_ for _ in ()).throw(RemoteError("redis-1: no answer"))
    with pytest.raises(Crashed) as error:
        healing.problems(*cluster(redis_1=silent, redis_2=other))
    assert "1 of 2 nodes could not be looked at: redis-1: no answer." in str(error.value)
    assert "On the others: redis-2: its server is down" in str(error.value)


def test_another_process_that_has_a_dead_server_s_pid_is_left_alone():
    memory = Cluster()
    memory.up(["redis-1"])
    node = memory.remote("redis-1")
    (foreign,) = node.processes
    node.files[PID_FILE] = f"{foreign} 1@before".encode()
    node.signal(foreign, signal.SIGSTOP)
    for act in (lambda: healing.leave(node, "redis-1"), Server(node, KINDS["redis"], {}).kill):
        act()
        assert node.processes == {foreign: "T"}
    assert "redis-1: its server is down" in healing.problems(memory, memory.nodes)
    healing.heal(memory, memory.nodes)
    assert node.processes[foreign] == "T"


def test_no_process_is_ended_by_a_part_of_its_command_line():
    memory = Cluster()
    memory.up(["client-1"])
    healing.leave(memory.remote("client-1"), "client-1")
    healing.heal(memory, memory.nodes)
    assert not [call for call in memory.calls if "pkill" in call.what or "pgrep" in call.what]


class Broken:
    """A family of a package with the package's defect."""

    name, files, ours_alone = "quake", (), ""

    def leftovers(self, remote, server):
        raise KeyError("seismograph")


def test_a_family_that_fails_leaves_nothing_else_unhealed_and_is_named(monkeypatch):
    node = Node(running=False, workers=[31], chains=True)
    monkeypatch.setattr(healing, "_families", lambda: [Broken(), *FAMILIES.sound()[0]])
    with pytest.raises(Crashed) as error:
        healing.heal(*cluster(redis_1=node))
    assert "cannot find what the fault quake left: KeyError: 'seismograph'" in str(error.value)
    assert node.running and not node.workers and not node.chains
    (said,) = healing.leave(node, "redis-1")
    assert "the fault quake" in said
    assert any(command.startswith("rm -rf") for command in node.ran)


@pytest.fixture
def broken_packages(monkeypatch):
    """Return installed packages, one with a fault and one with a server, that fail to import."""

    def points(group):
        brought = {"fencepost.faults": "quake", "fencepost.servers": "my-server"}
        return [EntryPoint(brought[group], "no_such_module:IT", group)] if group in brought else []

    monkeypatch.setattr(registry, "entry_points", points)
    for one in (FAMILIES, KINDS):
        one.forget()
    yield
    monkeypatch.undo()
    for one in (FAMILIES, KINDS):
        one.forget()


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["fencepost", *words])
    code = app.run()
    return code, "".join(capsys.readouterr())


@pytest.mark.parametrize("kept", [True, False])
def test_heal_heals_all_else_where_an_installed_package_is_broken_and_names_it(
    machine, monkeypatch, capsys, broken_packages, kept
):
    memory = machine["fencepost"]
    memory.up(["redis-1", "client-1"])
    node = memory.remote("redis-1")
    (pid,) = node.processes
    node.signal(pid, signal.SIGSTOP)
    with provision.reserved(None) as (_, reservation):
        reservation.set_keep(kept)
    code, said = run(monkeypatch, capsys, "heal")
    assert memory.left == []
    for name in ("quake", "my-server"):
        assert f"entry point {name} = no_such_module:IT" in said
    assert "Traceback" not in said
    if kept:
        assert code == 255
        assert f"resumed its stopped server (pid {pid})" in said
        assert "repair or uninstall them, and heal again" in said
    else:
        assert (code, memory.nodes) == (0, [])
