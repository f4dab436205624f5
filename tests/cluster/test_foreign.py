"""External servers in containers with only the server: no shell, no Python, no iptables.

Faults on them have receipts, and leave no trace.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.harness.cluster import docker_engine, image
from fencepost.harness.servers.wait import until
from tests.cluster.bare import bare, docker
from tests.cluster.healed import command as fencepost
from tests.cluster.healed import healed
from tests.cluster.kept import Kept, bystanders

FENCEPOST = [sys.executable, "-m", "fencepost"]
BARE = "fencepost-test-bare-redis"
_RUN = (
    'CMD ["/redis-server","--protected-mode","no","--bind","0.0.0.0","--save",""]',
    "EXPOSE 6379",
)
COMPOSE = f"""
services:
  r1: &server
    image: {BARE}
    networks: [back]
  r2: *server
  r3: *server
  other: *server
networks:
  back:
    internal: true
"""
LOCK = """
import uuid

import redis


class MyLock:
    def __init__(self, servers):
        host, port = servers[0]
        self.redis = redis.Redis(host=host, port=port, socket_timeout=1, retry=None)
        self.secret = ""

    def acquire(self, name, ttl):
        secret = uuid.uuid4().hex
        if not self.redis.set(name, secret, nx=True, px=int(ttl * 1000)):
            return False
        self.secret = secret
        return True

    def release(self, name):
        compare = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end"
        self.redis.eval(compare, 1, name, self.secret)
"""
# A kind of server as a user writes one: how to query it, and a clock that it shows.
KIND = """
import socket
import time

from fencepost.node.kind import Clock, Kind
from fencepost.node.watch import Watch


def ask(words):
    with socket.create_connection(("127.0.0.1", 7000), 2) as link:
        link.sendall(words + b"\\r\\n")
        return link.recv(1 << 16).decode()


def wall(mark):
    watch = Watch(time.CLOCK_REALTIME)
    _, _, second, _, micro, _ = ask(b"TIME").split("\\r\\n")
    return watch.bounds(int(second) * 10**9 + int(micro) * 1000, grain_ns=1000)


KIND = Kind(
    "mydb",
    __name__,
    port=7000,
    health=lambda: ask(b"PING") == "+PONG\\r\\n",
    version=lambda: "MyDB 1.0",
    leads=lambda: "role:master" in ask(b"INFO replication"),
    elects=True,
    clocks={"wall": Clock(wall)},
)
"""


@pytest.fixture(scope="module", autouse=True)
def image_of_redis() -> Iterator[None]:
    with bare(BARE, "cp -L /usr/bin/redis-server /x/", _RUN), bystanders(BARE):
        yield


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which a user works."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "compose.yml").write_text(COMPOSE)
    (tmp_path / "mylock.py").write_text(LOCK)
    (tmp_path / "mydb.py").write_text(KIND)
    return tmp_path


@pytest.fixture
def containers() -> Iterator[list[str]]:
    """Start another user's containers, and remove them in the end."""
    names: list[str] = []
    yield names
    docker("rm", "-f", *names, check=False)


def started(name: str) -> str:
    return docker("inspect", "-f", "{{.Id}} {{.State.StartedAt}} {{.State.Running}}", name)


def processes(name: str) -> dict[str, str]:
    """Return the state of each process of a container, by pid."""
    rows = docker("top", name, "-o", "pid,stat").splitlines()[1:]
    return dict(row.split() for row in rows)


def faults(folder: Path) -> list[dict]:
    return json.loads((folder / "results" / "latest" / "results.json").read_text())["faults"]


def test_a_stopped_project_is_started_faulted_and_removed(place):
    before = Kept()
    # On a busy machine a short run ends before a fault of every family was due.
    for time_s in ("12s", "60s"):
        code, said = fencepost(
            "test", "redlock", "--compose", "compose.yml", "--servers", "r1,r2,r3",
            "--time", time_s, "--interval", "2s", "--seed", "2", "--concurrency", "2",
            "--nemesis", "partition:one,pause:server,kill:one,delay:r2,clock:r3/+500ms",
        )  # fmt: skip
        if "and none was injected" not in said:
            break
    assert code == 0, said
    assert "Faults that these servers support: partition, delay, packet, pause, clock, kill" in said
    found = faults(place)
    assert all(fault["proved"] and fault["healed"] for fault in found), found
    assert {fault["family"] for fault in found} >= {"partition", "pause", "kill"}
    test = json.loads((place / "results" / "latest" / "test.json").read_text())
    assert test["servers"] == ["r1", "r2", "r3"] and test["compose"] == "compose.yml"
    versions = json.loads((place / "results" / "latest" / "run.json").read_text())["versions"]
    assert re.search(r"r1: fencepost-(\d+-)?servers-", versions["containers"])
    assert not before.changed()


def test_a_project_that_is_up_is_used_and_left_as_it_was(place, containers):
    name = "somebody"
    compose = [*docker_engine.compose_there(), "-p", name, "-f", "compose.yml"]
    subprocess.run([*compose, "up", "-d"], check=True, capture_output=True)
    environ = os.environ | {"COMPOSE_PROJECT_NAME": name}
    before = Kept(name)
    servers = {one: started(one) for one in before.containers(name)}
    try:
        done = subprocess.run(
            [*FENCEPOST, "test", "redis", "--compose", "compose.yml", "--servers", "r1",
             "--time", "4s", "--seed", "7", "--nemesis", "partition,pause:r1", "--interval", "1s",
             "--concurrency", "2"],
            env=environ, capture_output=True, text=True, timeout=900,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "is running: its servers are used and kept" in done.stdout
        assert not before.changed() and len(servers) == 4
        assert {one: started(one) for one in servers} == servers
        (server,) = [one for one in servers if "r1" in one]
        # Not stopped, and without an unreaped process of fencepost's.
        assert len(states := processes(server)) == 1 and "T" not in "".join(states.values())
    finally:
        subprocess.run([*compose, "down", "-v"], check=True, capture_output=True)


def test_after_a_sigkill_in_the_middle_of_faults_heal_leaves_everything_as_it_was(
    place, containers
):
    for name in ("k1", "k2", "k3"):
        docker("run", "-d", "--name", name, BARE)
        containers.append(name)
    before = Kept(*containers)
    schedule = [
        {
            "at_s": 0.2,
            "duration_s": 90,
            "family": "partition",
            "targets": ["client-1", "k1"],
            "arguments": {"links": [["client-1", "k1"]]},
        },
        {"at_s": 0.2, "duration_s": 90, "fault": "pause:k2"},
        {"at_s": 0.2, "duration_s": 90, "fault": "kill:k3/never"},
    ]
    (place / "schedule.json").write_text(json.dumps(schedule))
    command = subprocess.Popen(
        [*FENCEPOST, "test", "redlock", "--containers", "k1,k2,k3", "--time", "100s",
         "--schedule", "schedule.json", "--concurrency", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert until(lambda: len(struck(place)) == 3, 300), command.stdout and struck(place)
    finally:
        command.send_signal(signal.SIGKILL)
        command.wait()
    assert processes("k2").popitem()[1].startswith("T")
    assert started("k3").endswith("false")
    assert "FENCEPOST" in rules("k1")

    code, said = fencepost("heal", "--check")
    assert code == 1 and "the sidecar of k3: a run left it" in said, said
    code, said = healed()
    assert code == 0, said
    for words in (
        "k1: removed fencepost's iptables chains",
        "k2: resumed its stopped processes (1)",
        "k3: restarted its killed container",
    ):
        assert words in said
    assert not before.changed()
    assert not processes("k2").popitem()[1].startswith("T")
    assert started("k3").endswith("true")
    assert "FENCEPOST" not in rules("k1")
    assert fencepost("heal", "--check")[0] == 0


def struck(folder: Path) -> list[str]:
    """Return the families of the faults that have their receipts by now."""
    history = folder / "results" / "latest" / "history.jsonl"
    rows = history.read_text().splitlines()[:-1] if history.exists() else []
    ops = [json.loads(row) for row in rows if '"nemesis"' in row]
    return [op["f"] for op in ops if op["type"] == "ok" and op["value"]["phase"] == "start"]


def rules(container: str) -> str:
    network = f"container:{container}"
    return docker(
        "run", "--rm", "--network", network, "--cap-add", "NET_ADMIN", "--entrypoint", "iptables",
        image.ensure(print), "-S",
    )  # fmt: skip


def test_a_server_of_a_user_s_kind_has_clock_leader_and_version(place, containers):
    # It is killed while a client may hold the lock, and must forget nothing.
    docker("run", "-d", "--name", "db1", BARE, "/redis-server", "--port", "7000",
           "--protected-mode", "no", "--bind", "0.0.0.0", "--dir", "/data",
           "--appendonly", "yes", "--appendfsync", "always")  # fmt: skip
    containers.append("db1")
    code, said = fencepost(
        "test", "mylock.py:MyLock", "--containers", "./mydb.py=db1", "--time", "6s",
        "--seed", "3", "--interval", "2s", "--concurrency", "2",
        "--nemesis", "clock:primary/+300ms,pause:primary",
    )  # fmt: skip
    assert "clock" in said.split("Not:")[0], said
    found = faults(place)
    assert found and all(fault["proved"] and fault["healed"] for fault in found), said
    versions = json.loads((place / "results" / "latest" / "run.json").read_text())["versions"]
    assert versions["mydb"] == "MyDB 1.0"

    # Without its file only its port identifies it, and it has no clock.
    faults_of = [
        {"at_s": 0.5, "duration_s": 1, "fault": "pause:db1"},
        {"at_s": 2, "duration_s": 0.5, "fault": "kill:db1"},
        {"at_s": 3, "duration_s": 1, "fault": "partition:db1"},
        {"at_s": 4.5, "duration_s": 1, "fault": "delay:db1"},
    ]
    (place / "schedule.json").write_text(json.dumps(faults_of))
    code, said = fencepost(
        "test", "mylock.py:MyLock", "--containers", "db1:7000", "--time", "15s",
        "--concurrency", "2", "--schedule", "schedule.json",
    )  # fmt: skip
    assert code == 0 and "clock (db1 does not show its wall clock" in said, said
    assert len(found := faults(place)) == 4
    assert all(fault["proved"] and fault["healed"] for fault in found), found


@pytest.mark.long
def test_an_impossible_request_gives_one_sentence_and_leaves_nothing(place, containers):
    docker("create", "--name", "down", BARE)
    docker("run", "-d", "--name", "loop", BARE, "/redis-server", "--bind", "127.0.0.1")
    docker("run", "-d", "--rm", "--name", "mortal", BARE)
    docker("run", "-d", "--name", "hostly", "--network", "host", BARE)
    containers += ["down", "loop", "mortal", "hostly"]
    before = Kept(*containers)
    for words, sentence in (
        (["--containers", "nobody"], "there is no container 'nobody'"),
        (["--containers", "down"], "the container down is not running, but created"),
        (["--containers", "hostly"], "has no network of its own (network mode host)"),
        (["--containers", "loop"], "loop cannot be reached at"),
        (["--containers", "mortal:7000"], "nothing in the container mortal listens on port 7000"),
        (["--containers", "mortal", "--nemesis", "kill:mortal"], "when it ends (--rm)"),
        (["--compose", "compose.yml", "--servers", "r9"], "there is no service 'r9'"),
        (["--compose", "mydb.py", "--servers", "r1"], "mydb.py is not a valid Compose file"),
    ):
        code, said = fencepost("test", "redis", "--time", "2s", *words)
        assert code == 254, said
        last = said.strip().splitlines()[-1]
        assert last.startswith("fencepost: ") and sentence in last, said
        assert not before.changed()


def test_a_subnet_in_use_gives_one_sentence_and_leaves_nothing(place):
    docker("network", "create", "--subnet", "10.213.7.0/24", "taken")
    subnet = "    ipam: {config: [{subnet: 10.213.7.0/24}]}\n"
    (place / "compose.yml").write_text(COMPOSE + subnet)
    before = Kept("taken")
    try:
        code, said = fencepost("test", "redis", "--compose", "compose.yml", "--servers", "r1")
        assert code == 255, said
        last = said.strip().splitlines()[-1]
        assert last.startswith("fencepost: cannot start compose.yml: ") and "pool" in last.lower()
        assert not before.changed()
    finally:
        docker("network", "rm", "taken")
