"""A sidecar of an external server follows the server's container, and undoes its faults."""

from __future__ import annotations

import io
import itertools
import json
import signal
import subprocess
import sys
import tarfile
from types import SimpleNamespace

import pytest
from docker.errors import APIError, NotFound

from fencepost.harness.cluster import detach, docker_calls, external, project
from fencepost.harness.cluster import labels as ours
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.docker_engine import Engine
from fencepost.harness.cluster.sidecar import Sidecar, Target, sidecars
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.remote import sidecar as module
from fencepost.harness.remote.remote import NoAnswer, Result
from fencepost.harness.remote.sidecar import SidecarRemote
from fencepost.harness.servers.external import ForeignServer
from fencepost.harness.servers.external_names import Named

CLOCK = itertools.count(10)


class Container:
    """A container of the engine in memory. One that shares another's processes ends with it."""

    def __init__(self, docker, name, labels=None, beside=None, **attrs):
        self.docker, self.id, self.name, self.labels = docker, f"id-{name}", name, labels or {}
        self.partner, self.signals, self.files = beside, [], {}
        self.attrs = {
            "Id": self.id, "Image": "sha256:0123456789abcdef",
            "State": {"Running": False, "Paused": False, "Status": "created", "StartedAt": "0"},
            "HostConfig": {"NetworkMode": "back", "AutoRemove": False},
            "Config": {"Image": "redis:7", "ExposedPorts": {"6379/tcp": {}}},
            "NetworkSettings": {"Networks": {"back": {"IPAddress": "10.0.0.2"}}},
        } | attrs  # fmt: skip

    def start(self):
        moment = f"2026-01-01T00:00:{next(CLOCK)}.5Z"
        self.attrs["State"] |= {"Running": True, "Status": "running", "StartedAt": moment}

    def end(self):
        self.attrs["State"] |= {"Running": False, "Status": "exited"}
        for other in self.docker.all.values():
            if other.partner is self and other.attrs["State"]["Running"]:
                other.end()

    def kill(self, signal="SIGKILL"):
        if not self.attrs["State"]["Running"]:
            raise APIError(f"Container {self.id} is not running")
        self.signals.append(signal)
        if "KILL" in signal:
            self.end()

    def reload(self):
        pass

    def top(self):
        return {"Processes": [["1", "sleep"]]}

    def put_archive(self, path, data):
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            self.files |= {f"{path}{name}": b"" for name in tar.getnames()}

    def get_archive(self, path):
        if path not in self.files:
            raise NotFound(path)
        return [], {}

    def exec_run(self, words):
        self.files.pop(words[-1], None)

    def logs(self, since):
        return f"since {since}\n".encode()

    def remove(self, **_):
        self.end()
        del self.docker.all[self.id]


class Docker:
    """An engine that keeps containers."""

    def __init__(self):
        self.all = {}
        self.containers = self
        self.refused = ""
        none = type("None", (), {"list": staticmethod(lambda **_: [])})
        self.networks = self.volumes = self.images = none

    def run(self, name, **more):
        self.all[f"id-{name}"] = made = Container(self, name, **more)
        made.start()
        return made

    def get(self, wanted):
        for one in self.all.values():
            if wanted in (one.id, one.name):
                return one
        raise NotFound(wanted)

    def list(self, **_):
        return list(self.all.values())

    def create(self, image, name, labels, network_mode, pid_mode, **given):
        if self.refused:
            raise APIError(self.refused)
        assert network_mode == pid_mode
        assert given["pids_limit"] and given["mem_limit"]
        assert given["security_opt"] == ["no-new-privileges:true"]
        partner = self.get(network_mode.removeprefix("container:"))
        made = self.all[f"id-{name}"] = Container(self, name, labels, partner)
        return made


@pytest.fixture
def docker():
    return Docker()


def place(docker, name="r1"):
    docker.run(name)
    target = external.target(docker, Named(name, None), name)
    return Sidecar.place(docker, "fencepost", "image", target)


def test_a_sidecar_is_found_by_its_labels_with_its_server_s_description(docker):
    sidecar = place(docker)
    (found,) = sidecars(docker, "fencepost")
    assert found.target == sidecar.target
    assert (found.target.name, found.target.port) == ("r1", "6379")
    assert found.target.image == "redis:7 (sha256:0123456789ab)"
    assert ours.LABEL in docker.get("fencepost_helper-r1").labels


def test_a_sidecar_ends_with_the_server_s_container_and_returns_with_it(docker):
    sidecar = place(docker)
    before = docker.get("fencepost_helper-r1").attrs["State"]["StartedAt"]
    since = docker.get("r1").attrs["State"]["StartedAt"]
    assert sidecar.beside() == ("id-fencepost_helper-r1", since)
    assert docker.get("fencepost_helper-r1").attrs["State"]["StartedAt"] == before
    assert sidecar.kill()
    assert sidecar.beside() is None
    moved = []
    sidecar.started = lambda: moved.append(1)
    sidecar.start()
    again = docker.get("r1").attrs["State"]["StartedAt"]
    assert sidecar.beside() == ("id-fencepost_helper-r1", again) and again != since
    assert moved == [1]
    assert docker.get("fencepost_helper-r1").attrs["State"]["StartedAt"] > before


def test_a_server_that_was_restarted_by_others_gets_its_sidecar_back(docker):
    sidecar = place(docker)
    docker.get("r1").end()
    docker.get("r1").start()
    assert sidecar.beside() is not None
    assert docker.get("fencepost_helper-r1").attrs["State"]["Running"]


def test_only_a_server_that_fencepost_killed_is_started_again(docker):
    by_us, by_others = place(docker, "r1"), place(docker, "r2")
    by_us.kill()
    docker.get("r2").end()
    assert (by_us.killed, by_others.killed) == (True, False)
    undone = detach.undo(docker, "fencepost")
    assert undone == ["r1: restarted its killed container"]
    assert docker.get("r1").attrs["State"]["Running"]
    assert not docker.get("r2").attrs["State"]["Running"]
    assert [one.name for one in docker.all.values()] == ["r1", "r2"]


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """No agent starts: a server has one process, and there are no rules and skews."""

    def run(self, argv, **_):
        if "listener" in argv:
            return Result(0, json.dumps({"pid": 1, "tree": [1, 7]}), "")
        return Result(0, "", "")

    monkeypatch.setattr(SidecarRemote, "run", run)
    monkeypatch.setattr(SidecarRemote, "state", lambda self, pid, started=None: "S")


def test_the_engine_s_refusal_of_a_sidecar_is_reported_with_the_reason(docker):
    docker.run("r1")
    docker.refused = "authorization denied by plugin"
    target = external.target(docker, Named("r1", None), "r1")
    with pytest.raises(Crashed, match=r"create a sidecar of r1: authorization denied"):
        Sidecar.place(docker, "fencepost", "image", target)
    assert list(docker.all) == ["id-r1"]


class Remote:
    """A sidecar's node, with a server of two processes."""

    node = "r1"

    def __init__(self):
        self.signals, self.states = [], {1: "S", 7: "S"}

    def run(self, argv, **_):
        return Result(0, json.dumps({"pid": 1, "tree": [1, 7]}), "")

    def signal(self, pid, number, started=None):
        self.signals.append((pid, number))
        return True

    def state(self, pid, started=None):
        return self.states[pid]


def test_the_engine_stops_the_first_process_and_the_sidecar_the_others(docker):
    sidecar, remote = place(docker), Remote()
    server = ForeignServer(remote, sidecar, None, 6379, stays=True)
    assert server.pause() == 1
    assert docker.get("r1").signals == ["STOP"]
    assert remote.signals == [(7, signal.SIGSTOP)]
    remote.states = {1: "T", 7: "T"}
    assert server.stopped() == [1, 7]


def test_a_server_that_is_down_is_neither_stopped_nor_killed_and_has_no_pid(docker):
    sidecar = place(docker)
    server = ForeignServer(Remote(), sidecar, None, 6379, stays=True)
    docker.get("r1").end()
    assert (server.pause(), server.kill(), server.pid()) == (None, None, None)
    assert "has ended" in server.restarted()


def test_a_start_by_a_fault_is_not_taken_for_one_by_others(docker):
    sidecar = place(docker)
    server = ForeignServer(Remote(), sidecar, None, 6379, stays=True)
    server.kill()
    server.start()
    assert server.restarted() == ""
    docker.get("r1").end()
    docker.get("r1").start()
    assert "was restarted, but not by a fault" in server.restarted()


def test_with_its_container_every_process_of_a_server_is_gone(monkeypatch):
    monkeypatch.undo()
    remote = SidecarRemote("r1", lambda: None)
    assert remote.state(1) is None
    assert remote.signal(1, signal.SIGCONT) is False
    with pytest.raises(NoAnswer, match="its container is not running"):
        remote.run(["true"])


def test_a_connection_into_an_ended_sidecar_is_not_used(monkeypatch):
    monkeypatch.undo()
    places = [("sidecar", "then"), ("sidecar", "now")]
    remote = SidecarRemote("r1", lambda: places[0])
    spawned = []

    def exec_in(container, argv):
        spawned.append(container)
        code = "for line in __import__('sys').stdin: print('{\"state\": \"S\"}', flush=True)"
        words = [sys.executable, "-c", code]
        pipe = subprocess.PIPE
        return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)

    monkeypatch.setattr(module, "exec_in", exec_in)
    assert [remote.state(1), remote.state(1)] == ["S", "S"] and len(spawned) == 1
    places.pop(0)
    assert remote.state(1) == "S" and len(spawned) == 2
    remote.close()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"State": {"Running": False, "Paused": False, "Status": "exited"}}, "is not running"),
        ({"State": {"Running": True, "Paused": True, "Status": "paused"}}, "docker unpause r1"),
        ({"HostConfig": {"NetworkMode": "host"}}, r"no network of its own \(network mode host\)"),
        ({"Config": {"Image": "x", "ExposedPorts": {"1/tcp": {}, "2/tcp": {}}}}, "write NAME:PORT"),
    ],
)
def test_a_container_that_cannot_be_used_is_named(docker, change, sentence):
    docker.run("r1").attrs |= change
    with pytest.raises(BadArguments, match=sentence):
        external.target(docker, Named("r1", None), "r1")
    with pytest.raises(BadArguments, match="there is no container 'r2'"):
        external.target(docker, Named("r2", None), "r2")


def test_servers_that_share_no_network_are_named(docker):
    found = [Target(name, f"id-{name}", name, "", "", "1", "") for name in ("r1", "r2")]
    docker.run("r1")
    docker.run("r2", NetworkSettings={"Networks": {"front": {"IPAddress": "10.1.0.2"}}})
    with pytest.raises(BadArguments, match="r1, r2 have no network in common"):
        external.common_network(docker, found)
    assert external.common_network(docker, found[:1]) == "back"


def test_a_cluster_s_project_is_recognized_by_its_exact_name(docker):
    names = ("fencepost-servers-0a1b2c3d", "fencepost-2-servers-0a1b2c3d", "fencepost-servers-mine")
    for name in names:
        docker.run(name, labels={"com.docker.compose.project": name})
    assert project.brought_up(docker, "fencepost") == [names[0]]
    assert project.owners(docker) == {"fencepost", "fencepost-2"}


def test_a_sidecar_that_a_killed_command_left_without_any_node_is_found_and_removed(
    docker, monkeypatch
):
    place(docker).kill()
    monkeypatch.setattr(docker_calls, "client", lambda: docker)
    cluster = ComposeCluster(Engine("20"), "fencepost")
    assert cluster.look() == []
    assert cluster.remains == ["the sidecar of r1"]
    cluster.down()
    assert cluster.undone == ["r1: restarted its killed container"]
    assert [one.name for one in docker.all.values()] == ["r1"]
    assert cluster.remains == []


def test_a_kept_cluster_detaches_from_the_servers_and_stays(docker, monkeypatch):
    sidecar = place(docker)
    sidecar.kill()
    client = docker.run("client-1", labels=ours.labels("fencepost", "client-1"))
    monkeypatch.setattr(docker_calls, "client", lambda: docker)
    left = []
    network = SimpleNamespace(disconnect=lambda container, force: left.append(container))
    docker.networks = SimpleNamespace(list=lambda **_: [], get=lambda name: network)
    cluster = ComposeCluster(Engine("20"), "fencepost")
    assert cluster.part() == ["r1: restarted its killed container"]
    assert left == [client.id] and cluster.nodes == ["client-1"]
