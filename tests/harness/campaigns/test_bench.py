"""Measure locks on a cluster in memory: every phase runs, and nothing remains."""

from __future__ import annotations

import json
import threading
import time
from types import SimpleNamespace

import pytest

from fencepost.harness.campaigns import bench
from fencepost.harness.clients import streams, worker
from fencepost.harness.errors import Crashed
from fencepost.harness.spec import needs
from tests.harness.memory import Cluster
from tests.harness.memory_service import Silent

pytestmark = pytest.mark.slow

SPEC = bench.spec_of("redis", 7)


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(streams, "_END_S", 0.05)
    made = Cluster()
    made.up(needs.nodes([SPEC]))
    return made


def test_a_client_waits_for_its_turn_as_long_as_it_takes():
    assert SPEC.options["retries"] >= 1000
    assert SPEC.options["node_timeout_ms"] >= 1000


def test_every_phase_is_measured_and_the_clients_are_closed(cluster):
    said = []
    found = bench.measure(SPEC, cluster, 0.3, said.append).to_json()
    assert said == [f"redis: {words}" for words in bench.PHASES.values()]
    assert list(found["phases"]) == list(bench.PHASES)
    for figures in found["phases"].values():
        assert figures["pairs"] > 2
        assert 0 < figures["acquire_p50"] <= figures["acquire_p99"]
    assert found["trips"] == {"acquire": 0, "release": 0}
    assert cluster.left == []


def test_the_versions_of_the_servers_that_were_measured_are_stored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FENCEPOST_RESULTS", raising=False)
    measured = [
        bench.Measured("redis", versions={"redis": "Redis 7.0.15"}),
        bench.Measured("etcd", versions={"etcd": "etcd Version: 3.5.16"}),
    ]
    folder, stored = bench.store(measured, "fencepost bench etcd", {"docker": "20.10"})
    assert stored["versions"] == {
        "docker": "20.10", "redis": "Redis 7.0.15", "etcd": "etcd Version: 3.5.16"
    }  # fmt: skip
    assert json.loads((folder / "bench.json").read_text()) == stored


def test_the_counter_of_packets_is_removed(cluster):
    bench.measure(SPEC, cluster, 0.05, lambda text: None)
    last = [call.what for call in cluster.calls if "FENCEPOST-BENCH" in call.what][-1]
    assert "-X FENCEPOST-BENCH" in last


def test_a_client_that_does_not_stop_is_a_crash_and_all_are_closed(cluster, monkeypatch):
    rest = worker.Worker.rest

    def rests(one, timeout_s):
        # The others have enough time, however busy the machine is.
        return rest(one, 0.5 if one.node == "client-3" else 10 * timeout_s)

    monkeypatch.setattr(worker.Worker, "rest", rests)
    monkeypatch.setattr(bench, "PHASES", {"apart": "each client on a lock of its own"})
    asked = threading.Event()
    # The phase lasts until the client has sent its request.
    monkeypatch.setattr(bench, "time", SimpleNamespace(sleep=lambda _: asked.wait(300)))

    def answers(node, f):
        if node == "client-3":
            asked.set()
            raise Silent
        time.sleep(0.005)  # so that they do not block each other

    cluster.service.answers = answers
    with pytest.raises(Crashed, match=r"client-3 did not come to rest: its acquire has no answer"):
        bench.measure(SPEC, cluster, 600, lambda text: None)
    assert cluster.left == []
