"""Nodes by SSH, with a real sshd: Compose's own, and existing hosts."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.cluster import timing
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.healing import heal, problems
from fencepost.harness.cluster.hosts import HostsCluster
from fencepost.harness.cluster.hostsfile import read
from fencepost.harness.cluster.provision import Way, brought_up
from fencepost.harness.errors import Crashed
from fencepost.harness.execute import timed
from fencepost.harness.execute.run import run
from fencepost.harness.execute.site import RunSite
from fencepost.harness.remote.docker import DockerRemote
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.remote.ssh import SshRemote
from fencepost.harness.servers.wait import until
from fencepost.harness.spec.spec import Spec
from fencepost.harness.spec.validation import validate
from fencepost.nemesis.director import Director
from fencepost.nemesis.iptables import connect
from fencepost.nemesis.nemesis import Fault
from fencepost.nemesis.schedule import Scheduled
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.runs import SHORT

REDIS = [f"redis-{n}" for n in range(1, 6)]
CLIENTS = ["client-1", "client-2"]
CUT = Fault("cut", "partition", ["redis-1", "redis-2"], {"links": [["redis-1", "redis-2"]]})
# End every session of the node's sshd, and so every connection to the node.
HANG_UP = "pkill -9 -f '^sshd(-session)?: (root|us)'"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with brought_up([*REDIS, "storage", *CLIENTS], print, way=Way("ssh")) as nodes:
        yield nodes


@pytest.fixture
def remote(cluster):
    found = cluster.remote("redis-1")
    assert isinstance(found, SshRemote)
    return found


@pytest.fixture
def inside(cluster):
    """Reach the same node by another way, which does not depend on its sshd."""
    assert isinstance(cluster, ComposeCluster)
    found = DockerRemote("redis-1", cluster._containers["redis-1"])
    yield found
    found.close()


@pytest.fixture
def director(cluster, tmp_path):
    spec = Spec("ssh", "redlock", LOCKS["redlock"].read_options({}), concurrency=2)
    recorder = Recorder(tmp_path / "history.jsonl")
    site = RunSite(spec, cluster, recorder)
    site.prepare()
    found = Director(site, lambda *op: recorder.op("nemesis", *op))
    yield found
    found.heal_all()
    site.client_fleet.close()
    recorder.close()


def test_commands_files_and_processes(remote):
    assert remote.run(["echo", "$HOME", "a b"]).out == "$HOME a b\n"
    assert remote.run(["id", "-un"]).out == "root\n"
    remote.put("/tmp/deep/file", b"\0content\xff")
    assert remote.get("/tmp/deep/file") == b"\0content\xff"
    program = remote.spawn(["sh", "-c", "echo $$; exec sleep 600"])
    pid = int(program.stdout.read(100))
    assert remote.signal(pid, signal.SIGSTOP)
    end = time.monotonic() + 240
    while remote.state(pid) != "T":  # it stops when it has the processor next
        assert time.monotonic() < end
    assert remote.signal(pid, signal.SIGKILL)
    assert program.wait(120) != 0
    assert remote.state(pid) is None
    with pytest.raises(RemoteError, match="still running after 0"):
        remote.run(["sleep", "600"], timeout_s=0.2)


def test_each_node_has_a_host_key_of_its_own_and_no_other_is_taken(cluster, remote, tmp_path):
    keys = {cluster.remote(node).get("/run/fencepost/ssh/host_key.pub") for node in cluster.nodes}
    assert len(keys) == len(cluster.nodes)

    other = cluster.remote("redis-2").host.known_hosts.read_text().splitlines()
    line = next(row for row in other if row.startswith(f"{cluster.address('redis-2')} "))
    known = tmp_path / "known_hosts"
    known.write_text(line.replace(cluster.address("redis-2"), remote.host.host) + "\n")
    with pytest.raises(RemoteError, match=f"its host key differs from the one in {known}"):
        SshRemote("redis-1", replace(remote.host, known_hosts=known)).run(["true"])


def test_a_short_run_is_valid(cluster, results):
    options = LOCKS["redlock"].read_options({})
    spec = Spec(
        "ssh", "redlock", options, nemesis=("pause",), concurrency=2, time_s=4, seed=3, ttl_ms=500,
        **SHORT,
    )  # fmt: skip
    outcome = run(validate(spec), cluster, lambda status: None)
    assert outcome.verdicts["lease_exclusion"].valid is True, outcome.results
    assert outcome.verdicts["faults"].valid is True
    assert "run" not in outcome.verdicts
    assert outcome.results["stats"]["holds"] > 10


def rules(inside):
    return [row for row in inside.run(["iptables", "-w", "-S"]).out.splitlines() if "DROP" in row]


def test_a_fault_is_healed_although_the_connection_was_killed_meanwhile(
    cluster, director, remote, inside
):
    assert director.inject(CUT).proved
    assert rules(inside)

    inside.run(["bash", "-c", HANG_UP])
    healed = director.heal("cut")

    assert healed.proved, healed
    assert rules(inside) == []
    heal(cluster, ["redis-1"])
    assert "FENCEPOST" not in inside.run(["iptables", "-w", "-S"]).out


def test_a_fault_is_healed_although_the_connection_is_killed_while_it_is(
    director, remote, inside, monkeypatch
):
    assert director.inject(CUT).proved
    real = remote.run
    hung_up = []

    def hang_up_first(argv, **options):
        if "iptables-restore" in argv[-1] and not hung_up:
            hung_up.append(argv)
            return real(["bash", "-c", f"{HANG_UP}; sleep 600"], **options)
        return real(argv, **options)

    monkeypatch.setattr(remote, "run", hang_up_first)
    healed = director.heal("cut")

    assert hung_up
    assert healed.proved, healed
    assert rules(inside) == []


def test_a_connection_that_is_cut_in_any_phase_loses_and_leaves_nothing(
    cluster, results, monkeypatch
):
    """During set-up, the run, a fault and cleanup."""
    asking = SshRemote._ask
    made, cut = [0], [0]

    def ask(self, *request, **options):
        made[0] += 1
        if made[0] == cut[0]:
            way = DockerRemote(self.node, cluster._containers[self.node])
            way.run(["bash", "-c", HANG_UP])
            way.close()
        return asking(self, *request, **options)

    monkeypatch.setattr(SshRemote, "_ask", ask)
    monkeypatch.setattr(timed, "_REST_S", 1.0)
    options = LOCKS["redis"].read_options({})
    spec = Spec("cut", "redis", options, concurrency=2, time_s=2, seed=1, **SHORT)
    faults = [
        Scheduled(
            0.3, 0.6, "partition", ["redis-1", "storage"], {"links": [["redis-1", "storage"]]}
        ),
        Scheduled(1.0, 0.6, "pause", ["client-1"], {}),
    ]
    run(validate(spec), cluster, lambda status: None, schedule=faults)
    every = made[0]
    assert every > 30
    for number in (3, every // 3, every // 2, every * 3 // 4, every - 4):
        made[0], cut[0] = 0, number
        with suppress(RemoteError, Crashed):
            run(validate(spec), cluster, lambda status: None, schedule=faults)
        cut[0] = 0
        judged = json.loads((results / "cut" / "latest" / "results.json").read_text())
        wrong = [name for name, found in judged["checkers"].items() if found["valid"] is False]
        assert wrong == [], (number, judged["notes"])
        # A run that fails during set-up leaves servers that it has not started yet.
        found = problems(cluster, ["redis-1", "storage", *CLIENTS])
        assert [what for what in found if "server is down" not in what] == [], number


SSHD = """
set -e
useradd -m -s /bin/bash -p '*' us
echo 'us ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/us
mkdir -p /run/sshd /etc/foreign
ssh-keygen -q -t ed25519 -N '' -f /etc/foreign/host_key
rm -rf /opt/fencepost /usr/local/bin/fencepost-node /run/fencepost
/usr/sbin/sshd -p 2222 -o HostKey=/etc/foreign/host_key -o UsePAM=no -o AllowUsers=us \
  -o AuthorizedKeysFile=/etc/foreign/keys -o PasswordAuthentication=no -o PidFile=/etc/foreign/pid
"""
FOREIGN = ["redis-3", "storage", *CLIENTS]


# The last test of this file: those containers are no longer nodes of fencepost.
@pytest.fixture
def foreign(cluster, tmp_path) -> Iterator[tuple[Path, list[DockerRemote]]]:
    """Turn four of the containers into a user's hosts, without any file of fencepost's.

    Return the file that names them, and their addresses.
    """
    known, text, ways = "", "[defaults]\nport = 2222\nuser = 'us'\nsudo = true\n", []
    (tmp_path / "key").write_bytes(cluster.remote("storage").host.key.read_bytes())
    (tmp_path / "key").chmod(0o600)
    text += "key = 'key'\nknown_hosts = 'known_hosts'\n"
    for container, node in zip(FOREIGN, ["redis-1", "storage", *CLIENTS], strict=True):
        way = DockerRemote(node, cluster._containers[container])
        if "client" not in node:
            way.signal(int(way.get("/run/fencepost/server.pid").split()[0]), signal.SIGKILL)
        keys = way.get("/run/fencepost/ssh/authorized_keys")
        way.run(["bash", "-c", SSHD])
        way.put("/etc/foreign/keys", keys)
        kind, code = way.get("/etc/foreign/host_key.pub").decode().split()[:2]
        known += f"[{cluster.address(container)}]:2222 {kind} {code}\n"
        text += f"[nodes.{node}]\nhost = '{cluster.address(container)}'\n"
        ways.append(way)
    (tmp_path / "known_hosts").write_text(known)
    (tmp_path / "hosts.toml").write_text(text)
    yield tmp_path / "hosts.toml", ways
    for way in ways:
        way.close()


def test_hosts_that_were_there_are_set_up_and_left_as_they_were(
    cluster, foreign, results, tmp_path, monkeypatch
):
    file, ways = foreign
    # They count as other kernels: their clocks are measured, and found to be right.
    (tmp_path / "boot_id").write_text("another\n")
    measure = partial(timing.measure, boot_id=tmp_path / "boot_id")
    monkeypatch.setattr(timing, "measure", measure)
    before = [way.get("/etc/hosts") for way in ways]
    options = LOCKS["redis"].read_options({})
    chosen = {"concurrency": 2, "time_s": 3, "seed": 1, **SHORT}
    spec = validate(Spec("foreign", "redis", options, **chosen))
    with brought_up(
        [*spec.servers, "storage", *CLIENTS], print, way=Way("ssh", read(file))
    ) as hosts:
        assert isinstance(hosts, HostsCluster)
        assert hosts.remote("redis-1").run(["hostname"]).out == "redis-3\n"
        door = {"redis-1": (hosts.address("redis-1"), 6379)}
        # The run has started a server, and waits until it serves.
        client = hosts.remote("client-1")
        assert until(lambda: connect(client, door) == {"redis-1": "open"}, 120)
        stranger = cluster.remote("redis-1")
        assert connect(stranger, door) == {"redis-1": "silent"}
        outcome = run(spec, hosts, lambda status: None)
        # Simulate a command that was killed during a fault.
        hosts.remote("redis-1").run(["iptables", "-w", "-N", "FENCEPOST-IN"])

    assert outcome.valid is True, outcome.results
    assert outcome.results["stats"]["holds"] > 10
    clocks = json.loads((outcome.folder / "run.json").read_text())["clocks"]
    assert list(clocks) == CLIENTS
    for clock in clocks.values():
        assert abs(clock["offset_ns"]) <= clock["bound_ns"] < timing.MOST_ERROR_NS
    for way, hosts_file in zip(ways, before, strict=True):
        assert way.run(["pgrep", "-f", "redis-server|harness"], check=False).out == ""
        assert "FENCEPOST" not in way.run(["iptables", "-w", "-S"]).out
        assert way.get("/etc/hosts") == hosts_file
        assert way.run(["ls", "/run/fencepost"], check=False).out == ""
        assert way.run(["ls", "/usr/local/bin/fencepost-node"], check=False).out == ""

    # Another user's server is not taken for one of the run's, and stays.
    ways[0].run(["bash", "-c", "setsid redis-server --port 6379 > /dev/null 2>&1 < /dev/null &"])
    ways[0].run(["timeout", "5", "bash", "-c", "until redis-cli ping; do :; done"])
    with (
        pytest.raises(Crashed, match="redis-1: another program listens on port 6379"),
        brought_up([*spec.servers, "storage", *CLIENTS], print, way=Way("ssh", read(file))),
    ):
        pass
    assert ways[0].run(["redis-cli", "ping"]).out == "PONG\n"
