"""Measure locks on a cluster in memory: every phase runs, and nothing remains."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from fencepost.harness.campaigns import bench, campaign, costs
from fencepost.harness.campaigns.item import Hushed, Item
from fencepost.harness.clients import streams, worker
from fencepost.harness.errors import Crashed
from fencepost.harness.spec import needs
from fencepost.report.pages import bench as page
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
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    made = campaign.create(costs.plan(("etcd",), 5.0, 7))
    redis, etcd = made.plan.items(1)
    found = {"redis": "Redis 7.0.15", "docker": "20.10"}
    made.add(redis, bench.Measured("redis", versions=found), "")
    made.add(etcd, bench.Measured("etcd", versions={"etcd": "etcd Version: 3.5.16"}), "")
    stored = page.read(made.folder)
    assert stored["versions"] == found | {"etcd": "etcd Version: 3.5.16"}
    assert [one["lock"] for one in stored["locks"]] == ["redis", "etcd"]
    assert stored["command"] == "fencepost bench etcd --time 5s --seed 7"


def test_locks_are_measured_one_by_one_and_a_bench_is_resumed(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    made = campaign.create(costs.plan(("redis",), 0.05, 7))
    (item,) = made.left(1)
    made.add(item, item.does(item, cluster, Hushed()), "")
    again = campaign.resumed("latest", "bench", costs.from_json, lambda words: None)
    assert again.plan == made.plan and again.left(1) == []
    assert page.render(made.folder).is_file()


def test_what_a_suite_measures_together_has_a_folder_of_its_own(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    item = Item("bench", costs.together, specs=(SPEC,), asked=costs.Plan(("redis",), 0.05, 7))
    found = costs.together(item, cluster, Hushed())
    assert (found.folder / "report.html").is_file()
    assert [one["lock"] for one in found.stored["locks"]] == ["redis"]


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
    with pytest.raises(Crashed, match=r"client-3 did not stop its work: its acquire has no answer"):
        bench.measure(SPEC, cluster, 600, lambda text: None)
    assert cluster.left == []
