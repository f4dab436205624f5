"""Run a worker's program on this machine instead of on a node, and clusters in memory."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fencepost.harness import interrupts
from fencepost.harness.clients import shipped, streams
from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.cluster import projects, provision, reservation
from fencepost.harness.execute import client_fleet, timed
from fencepost.harness.judge import judge as judging
from fencepost.harness.servers import server
from fencepost.harness.spec import needs
from fencepost.nemesis import pause
from tests.harness.disturbed import ENDING, SPEC
from tests.harness.memory import Cluster
from tests.harness.talk import DEADLINE_S, PROGRAM, Talk

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def places(monkeypatch, tmp_path_factory):
    """Move reservations to a test's folders, of root and of everyone, so that the machine's own
    cluster stays available. The test is root."""
    found = [tmp_path_factory.mktemp(name) for name in ("root", "everybody")]
    monkeypatch.setattr(reservation, "places", lambda: found[:1])
    return found


class Machine:
    """The clusters of one machine, in memory, each by its project's name."""

    def __init__(self):
        self.clusters = {}

    def __getitem__(self, name):
        return self.clusters.setdefault(name, Cluster())

    def there(self):
        up = [name for name, cluster in self.clusters.items() if cluster.nodes]
        return [name for name in projects.names() if name in {*up, *projects.kept_clusters()}]


@pytest.fixture
def machine(monkeypatch):
    """Replace the engine of every command by one in memory, with its clusters."""
    made = Machine()
    monkeypatch.setattr(provision.docker_engine, "ensure", lambda say: None)
    monkeypatch.setattr(provision.docker_engine, "answering", lambda: None)
    monkeypatch.setattr(provision.docker_engine, "find", lambda: None)
    monkeypatch.setattr(provision.image, "ensure", lambda say: "image")
    monkeypatch.setattr(provision.image, "must_hold", lambda name, libraries: None)
    monkeypatch.setattr(provision, "ComposeCluster", lambda engine, name, *_: made[name])
    monkeypatch.setattr(provision, "there", made.there)
    return made


@pytest.fixture
def eventually():
    """Return the condition's value once it is true; fail after DEADLINE_S."""

    def wait(condition):
        end = time.monotonic() + DEADLINE_S
        while not (found := condition()):
            assert time.monotonic() < end, "it did not come about in time"
            time.sleep(0.002)
        return found

    return wait


@pytest.fixture
def state():
    """Return the state letter of a process from the kernel; None if it has ended."""

    def read(pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return None

    return read


@pytest.fixture
def setup():
    """Return a worker's setup; its lock needs no server, and no storage answers."""
    return {
        "process": 3,
        "stride": 5,
        "node": "client-1",
        "lock": "broken-always-yes",
        "options": {"token": "one", "retries": 0, "retry_delay_ms": 1, "node_timeout_ms": 50},
        "servers": ["redis-1"],
        "addresses": {"redis-1": ("127.0.0.1", 1), "storage": ("127.0.0.1", 1)},
        "storage": "storage",
        "guard": "none",
        "seed": "7",
        "origin_ns": time.monotonic_ns(),
    }


@pytest.fixture
def spawn():
    """Start programs; the test's end kills them in any state."""
    started = []

    def start(command):
        program = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        )
        started.append(program)
        return program

    yield start
    for program in started:
        program.kill()
        for stream in (program.stdin, program.stdout, program.stderr):
            stream.close()
        program.wait()


@pytest.fixture
def talk(spawn, setup):
    talk = Talk(spawn(PROGRAM))
    talk.say(control="setup", **setup)
    assert talk.hear() == {"control": "ready", "pid": talk.program.pid}
    return talk


@pytest.fixture
def recorder(tmp_path):
    """Write the history of a test's workers."""
    recorder = Recorder(tmp_path / "history.jsonl")
    yield recorder
    recorder.close()


@pytest.fixture
def short(monkeypatch, tmp_path):
    """Shorten waits for real servers, and skip the layout of the page."""
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(timed, "_REST_S", 0.1)
    monkeypatch.setattr(timed, "_READ_S", 0.1)
    monkeypatch.setattr(timed, "_LOOK_S", 0.005)
    monkeypatch.setattr(streams, "_END_S", 0.05)
    monkeypatch.setattr(pause, "_STATE_S", 0.05)
    monkeypatch.setattr(client_fleet, "archive_for", lambda *names: b"")
    monkeypatch.setattr(shipped, "zipped", lambda: b"")
    until = server.until
    monkeypatch.setattr(server, "until", lambda true, most_s, *_: until(true, min(most_s, 0.05)))
    monkeypatch.setattr(judging.report, "render", lambda run, *_: (run / "report.html").touch())


@pytest.fixture
def cluster(short):
    made = Cluster()
    made.up(needs.nodes([SPEC]))
    made.calls.clear()
    return made


@pytest.fixture
def signals():
    """Turn signals into interrupts, as for a command, and restore the handlers afterwards."""
    before = {number: signal.getsignal(number) for number in ENDING}
    # a shell that runs the tests in the background may have set them to be ignored
    for number in ENDING:
        signal.signal(number, signal.default_int_handler)
    interrupts.interrupt_on_signals()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
