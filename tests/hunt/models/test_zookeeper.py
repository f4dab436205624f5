"""The model of ZooKeeper answers as ZooKeeper 3.8 does, and expires sessions as it does."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fencepost.hunt.models.zookeeper import requests
from fencepost.hunt.models.zookeeper.ensemble import Ensemble
from fencepost.hunt.models.zookeeper.jute import framed
from fencepost.hunt.models.zookeeper.server import ZooKeeperServer
from fencepost.hunt.models.zookeeper.sessions import TICK, USUAL, Sessions
from fencepost.hunt.sim.network import Network
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import MS, World

dialogue = pytest.importorskip("tests.hunt.models.zookeeper_dialogue")
drawn = pytest.importorskip("tests.hunt.models.zookeeper_drawn")
sides = pytest.importorskip("tests.hunt.models.zookeeper_sides")
JAR = Path("/usr/share/java/zookeeper.jar")
HOST, START_S = "127.0.0.1", 240.0
DIALOGUES, STEPS = 10, 300
SWEEP_MS, SOON_S = 200, 20.0


def test_the_model_answers_a_recorded_dialogue_as_zookeeper_3_8_did() -> None:
    record = json.loads(dialogue.RECORD.read_text())
    talk = dialogue.Talk(sides.Modelled())
    for number, (step, told) in enumerate(zip(record["steps"], record["told"], strict=True)):
        assert json.loads(json.dumps(talk.step(step))) == told, f"step {number}: {step}"


def test_the_recorded_dialogue_has_notices_errors_and_sessions_that_move() -> None:
    record = json.loads(dialogue.RECORD.read_text())
    steps = Counter(step[0] for step in record["steps"])
    assert min(steps[name] for name in ("close", "drop", "again", "over", "wrong", "later")) > 0
    messages = [
        one for told in record["told"] for part in told for one in part if isinstance(one, list)
    ]
    kinds = Counter(one[1][0] for one in messages if one[0] == "notice")
    assert set(kinds) == {1, 2, 3, 4}
    errors = {one[3] for one in messages if one[0] == "answer"}
    assert {0, -5, -6, -8, -101, -102, -103, -108, -110, -111, -114, -121} <= errors
    assert {17, 18, 19} <= {step[2] for step in record["steps"] if step[0] == "request"}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """Start Debian's ZooKeeper, which deletes no container meanwhile."""
    with _serving(tmp_path_factory.mktemp("zookeeper"), sweep_ms=86_400_000) as address:
        yield address


@pytest.fixture(scope="module")
def sweeping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """Start one that looks for containers to delete all the time."""
    with _serving(tmp_path_factory.mktemp("sweeping"), SWEEP_MS) as address:
        yield address


@contextmanager
def _serving(folder: Path, sweep_ms: int) -> Iterator[tuple[str, int]]:
    """Start ZooKeeper on this machine, for these tests alone."""
    java = shutil.which("java")
    if java is None or not JAR.exists():
        pytest.skip("Debian's package `zookeeper` is not installed")
    with closing(socket.socket()) as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    config = folder / "zoo.cfg"
    config.write_text(
        f"tickTime={TICK // MS}\ndataDir={folder}/data\nclientPort={port}\n"
        f"clientPortAddress={HOST}\nmaxClientCnxns=0\nadmin.enableServer=false\n"
        "maxSessionTimeout=60000\n"
    )
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [
                java, "-Xmx128m", "-cp", f"{JAR}", "-Dzookeeper.forceSync=no",
                f"-Dznode.container.checkIntervalMs={sweep_ms}", main, str(config),
            ],
            stdout=log, stderr=log, cwd=folder,
        )  # fmt: skip
        try:
            _wait(port, server, folder / "log")
            yield HOST, port
        finally:
            server.kill()
            server.wait()


def _wait(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and server.poll() is None:
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.settimeout(5.0)
            probe.connect((HOST, port))
            probe.sendall(b"srvr")
            if b"Mode: standalone" in b"".join(iter(lambda: probe.recv(4096), b"")):
                return
        time.sleep(0.1)
    raise AssertionError(f"ZooKeeper does not serve: {log.read_text()[-2000:]}")


def test_a_dropped_connection_is_closed_at_the_server_before_the_next_step() -> None:
    """Otherwise ZooKeeper might not close a connection whose session another one takes over."""
    closed = []
    with socket.create_server((HOST, 0)) as listening:

        def serve() -> None:
            with closing(listening.accept()[0]) as link:
                while link.recv(100):
                    pass
                time.sleep(0.2)
                closed.append(True)

        server = Thread(target=serve)
        server.start()
        side = sides.Real(listening.getsockname())
        side.open(0, b"")
        side.drop(0)
        assert closed
        server.join()


@pytest.mark.slow
def test_random_dialogues_with_a_real_server_are_those_with_the_model(
    real: tuple[str, int],
) -> None:
    first = int(os.environ.get("FENCEPOST_MODEL_SEED") or 1)
    for seed in range(first, first + DIALOGUES):
        print(f"seed {seed}")
        dialogue.compare(real, seed, STEPS)


@pytest.mark.slow
def test_a_real_session_ends_between_its_timeout_and_a_tick_later(
    real: tuple[str, int],
) -> None:
    """The model's bounds (`Sessions`) hold for a real server, which is looked at through a second
    session. A busy machine may end a session later, but not each time."""
    shortest_s = []
    for _ in range(5):
        least_s, most_s = dialogue.measured_expiry(sides.Real(real), 1000)
        assert most_s >= 1.0
        shortest_s.append(least_s)
        if least_s <= 1.0 + TICK / 1e9:
            return
    raise AssertionError(f"each session lasted for more than a tick longer: {shortest_s}")


@pytest.mark.parametrize("asked_ms", [1000, 1500, 2000, 9999])
def test_a_session_expires_at_a_tick_after_its_timeout(asked_ms: int) -> None:
    for now in range(0, 2 * TICK, 37 * MS):
        sessions = Sessions(phase=130 * MS)
        sessions.add(1, asked_ms, 0, now)
        until = sessions.all[1].until
        assert (until - 130 * MS) % TICK == 0
        assert now + asked_ms * MS < until <= now + asked_ms * MS + TICK
        assert sessions.due(until - 1) == [] and sessions.due(until) == [1]


def test_timeouts_are_between_two_and_twenty_ticks() -> None:
    assert [USUAL.negotiated(asked) for asked in (0, 999, 1000, 1234, 10_000, 60_000)] == [
        1000, 1000, 1000, 1234, 10_000, 10_000,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("type", "name"), [(16, "reconfig"), (20, "deleteContainer"), (105, "setWatches2"), (77, "77")]
)
def test_a_request_that_the_model_lacks_is_refused_by_name(type: int, name: str) -> None:
    with pytest.raises(Unknown, match=f"ZooKeeper has no request .*{name}"):
        requests.request((1).to_bytes(4, "big") + type.to_bytes(4, "big"))


def test_four_letter_words_and_odd_flags_of_containers_are_refused_by_name() -> None:
    server = ZooKeeperServer("zookeeper-1", 0, Ensemble(Network(World(), None)))
    with pytest.raises(Unknown, match="no four-letter word ruok"):
        server.session().commands(b"ruok")
    for kind, words in ((drawn.Container, "no container"), (drawn.Ttl, "no TTL")):
        talk = dialogue.Talk(sides.Modelled())
        talk.step(["open", 0])
        odd = kind("/c", b"", [dialogue.ANYONE], 1)
        with pytest.raises(Unknown, match=f"{words} with the flags of others"):
            talk.step(["request", 0, *dialogue.packed(odd)])


def _asked(talk: Any, request: Any) -> int:
    """Return the error of a request on connection 0."""
    error: int = talk.step(["request", 0, *dialogue.packed(request)])[0][-1][3]
    return error


@pytest.mark.slow
def test_a_real_server_deletes_containers_that_had_children_and_no_others(
    sweeping: tuple[str, int],
) -> None:
    """As the model does (tests/hunt/models/test_ensemble.py)."""
    jute, anyone = dialogue.jute, [dialogue.ANYONE]
    talk = dialogue.Talk(sides.Real(sweeping))
    try:
        for path in ("/left", "/full", "/fresh"):
            assert _asked(talk, drawn.Container(path, b"", anyone, drawn.CONTAINER)) == 0
        for path in ("/left/a", "/full/a"):
            assert _asked(talk, jute.Create(path, b"", anyone, 0)) == 0
        assert _asked(talk, jute.Delete("/left/a", -1)) == 0
        end = time.monotonic() + SOON_S
        while _asked(talk, jute.Exists("/left", False)) == 0:
            assert time.monotonic() < end
            time.sleep(SWEEP_MS / 1000)
        assert [_asked(talk, jute.Exists(path, False)) for path in ("/full", "/fresh")] == [0, 0]
    finally:
        talk.end()


def test_a_malformed_record_closes_the_connection() -> None:
    for record in (b"", b"\0", b"\0" * 7):
        side = sides.Modelled()
        dialogue.Talk(side).step(["open", 0])
        side.send(0, record)
        assert side.receive(0) is None
    server = ZooKeeperServer("zookeeper-1", 0, Ensemble(Network(World(), None)))
    assert server.session().commands(framed(b"")[:3]) == []
    assert server.session().commands(b"\xff" * 4) == [("malformed",)]
