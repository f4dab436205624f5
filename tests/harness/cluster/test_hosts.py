"""A user's machines: which files and rules a run puts there, and that it removes them all."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from fencepost.harness.cluster import admission, healing
from fencepost.harness.cluster import hosts as module
from fencepost.harness.cluster.hosts import HostsCluster
from fencepost.harness.cluster.hostsfile import Hosts
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.remote import RemoteError, Result
from fencepost.harness.remote.ssh import Host
from fencepost.harness.servers.kinds import KINDS
from fencepost.workloads.resources.server import PORT as RESOURCE_PORT


class Ended:
    """A program that read its input and printed nothing."""

    def __init__(self, said=b""):
        self.stdin, self.stdout, self.stderr = io.BytesIO(), io.BytesIO(said), io.BytesIO()

    def wait(self, timeout=None):
        return 0

    def kill(self):
        pass


class Machine:
    """A host with fencepost's queue on eth0 and another one on eth1."""

    def __init__(self, node, in_place=False):
        self.node, self.in_place = node, in_place
        self.queues = {"eth0": "netem fe9c:", "eth1": "fq 8001:"}
        self.ran, self.fed, self.lacks = [], [], ""

    def run(self, argv, *, timeout_s=10.0, check=True):
        words = " ".join(argv)
        self.ran.append(words)
        out = ""
        if "names" in argv:
            out = json.dumps({"changed": True, "in_place": self.in_place})
        elif "tc qdisc show" in words and argv[0] == "bash":
            out = "".join(f"qdisc {q} dev {d} root refcnt 2\n" for d, q in self.queues.items())
        elif argv[:3] == ["tc", "qdisc", "show"]:
            out = f"qdisc {self.queues.get(argv[4], 'noqueue 0:')} root refcnt 2\n"
        elif argv[:3] == ["tc", "qdisc", "del"]:
            del self.queues[argv[4]]
        elif argv[0] == "test":
            return Result(1, "", "")
        return Result(0, out, "")

    def spawn(self, argv):
        self.fed.append(argv[-1])
        return Ended(self.lacks.encode())

    def get(self, path):
        raise RemoteError(f"{self.node}: no {path}")

    def put(self, path, content):
        pass

    def state(self, pid, started=None):
        return None


def hosts(*nodes):
    known = {node: Host("h", Path("known_hosts")) for node in nodes}
    return Hosts(Path("hosts.toml"), known, dict.fromkeys(nodes, "10.0.0.1"))


def cluster(*machines):
    said = []
    found = HostsCluster(hosts(*(machine.node for machine in machines)), said.append)
    found._remotes = {machine.node: machine for machine in machines}
    found.look()
    return found, said


def test_heal_removes_only_fencepost_s_queue_from_a_host():
    machine = Machine("redis-1")
    healing.leave(machine, "redis-1")
    assert machine.queues == {"eth1": "fq 8001:"}


def test_files_of_older_versions_in_system_folders_are_removed_and_none_are_added():
    machine = Machine("client-1")
    found, _ = cluster(machine)
    found.down()
    (unlink,) = [words for words in machine.ran if "/usr/local/bin/node" in words]
    # Only links that lead to fencepost.
    assert 'case "$(readlink "$link")" in /opt/fencepost/*) rm -f "$link"' in unlink
    assert not [script for script in machine.fed if "/usr/local" in script]


def test_a_host_is_cleaned_by_the_code_of_this_version_whichever_put_it_there():
    machine = Machine("redis-1")
    found, _ = cluster(machine)
    found.down()
    assert [script for script in machine.fed if "tar -xf - -C /opt/fencepost" in script]


def test_a_host_on_which_nothing_was_ever_installed_is_not_touched():
    machine = Machine("redis-1")
    machine.lacks = "/opt/fencepost"
    found, _ = cluster(machine)
    found.down()
    assert machine.ran == [] and len(machine.fed) == 1


def test_only_the_nodes_may_connect_to_the_ports_of_servers():
    machine = Machine("redis-1")
    admission.admit(machine, ["10.0.0.2", "10.0.0.1", "10.0.0.2"])
    rows = machine.ran[0].splitlines()
    rules = [row for row in rows if row.startswith("-A")]
    assert rules == [
        "-A FENCEPOST-ADMIT -i lo -j RETURN",
        "-A FENCEPOST-ADMIT -s 10.0.0.1 -j RETURN",
        "-A FENCEPOST-ADMIT -s 10.0.0.2 -j RETURN",
        "-A FENCEPOST-ADMIT -j DROP",
    ]
    (ports,) = [row.split("--dports ")[1].split()[0] for row in rows if "-I INPUT" in row]
    assert "6379" in ports.split(",")
    of_kinds = {port for kind in KINDS.values() for port in (kind.port, *kind.peers)}
    assert set(map(int, ports.split(","))) == {*of_kinds, RESOURCE_PORT}


def test_the_firewall_rules_for_the_nodes_are_removed_with_the_rest():
    machine = Machine("redis-1")
    found, _ = cluster(machine)
    found.down()
    (undone,) = [words for words in machine.ran if "-X FENCEPOST-ADMIT" in words]
    assert "-D INPUT" in undone


@pytest.mark.parametrize("in_place", [True, False])
def test_a_failed_replacement_of_etc_hosts_is_reported(in_place):
    found, said = cluster(Machine("client-1", in_place))
    found.down()
    assert bool(said) is in_place
    assert not in_place or "client-1: /etc/hosts is a mount" in said[0]


def test_a_host_that_does_not_answer_is_named_and_all_others_are_left():
    lost, other = Machine("redis-1"), Machine("redis-2")
    lost.run = lambda *_, **__: (_ for _ in ()).throw(RemoteError("redis-1: no connection"))
    found, _ = cluster(lost, other)
    with pytest.raises(Crashed, match=r"heal --hosts FILE` retries: redis-1: no connection"):
        found.down()
    assert "eth0" not in other.queues


class Silent(Ended):
    """A program whose connection hangs until a test closes it."""

    def __init__(self):
        super().__init__()
        self.cut = threading.Event()
        self.stdout = SimpleNamespace(read=lambda: self.cut.wait() and b"")

    def kill(self):
        self.cut.set()

    def wait(self, timeout=None):
        return -1


def test_a_host_that_hangs_during_set_up_times_out(monkeypatch):
    monkeypatch.setattr(module, "_INSTALL_S", 0.0)
    monkeypatch.setattr(module, "_SLACK_S", 0.01)
    machine = Machine("redis-1")
    machine.spawn = lambda argv: Silent()
    found, _ = cluster(machine)
    with pytest.raises(Crashed, match=r"redis-1: could not be set up \(exit code -1\)"):
        found.up(["redis-1"])


def test_the_wheels_of_a_host_belong_to_its_root(tmp_path):
    """Its user with the number of their owner here could replace them before pip reads them."""
    (tmp_path / "one.whl").write_text("x")
    (tmp_path / "one.whl").chmod(0o664)
    with tarfile.open(fileobj=io.BytesIO(module._tar(tmp_path))) as archive:
        (member,) = archive.getmembers()
    assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "")
    assert member.mode == 0o644
