"""What the clients of a run are told at their beginning."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from fencepost.harness.clients import streams
from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.execute.site import RunSite
from tests.harness.disturbed import SPEC


@pytest.fixture
def told(cluster, tmp_path):
    """The `setup` lines of a test's clients."""

    def setups(spec=SPEC):
        recorder = Recorder(tmp_path / "history.jsonl")
        site = RunSite(spec, cluster, recorder)
        site.prepare()
        recorder.start()
        site.client_fleet.start()
        lines = [cluster.remote(node).programs[-1]._setup for node in spec.clients]
        site.client_fleet.close()
        recorder.close()
        return lines, recorder.origin_ns

    return setups


def test_each_client_is_told_who_it_is_and_where_its_servers_are(told, cluster):
    (first, second), origin_ns = told()
    assert first == {
        "control": "setup",
        "versions": [1],
        "process": 0,
        "stride": SPEC.concurrency,
        "node": "client-1",
        "lock": SPEC.lock,
        "options": dict(SPEC.options),
        "servers": ["redis-1"],
        "addresses": {
            "redis-1": [cluster.address("redis-1"), 6379],
            "storage": [cluster.address("storage"), 6379],
        },
        "storage": "storage",
        "store": "redis",
        "guard": "none",
        "write_script": first["write_script"],
        "seed": str(SPEC.seed),
        "origin_ns": origin_ns,
    }
    assert "redis.call" in first["write_script"]
    assert second == first | {"process": 1, "node": "client-2"}


def test_the_steps_of_a_scenario_that_counts_them_are_failpoints(told):
    (first, _), _ = told(replace(SPEC, scenario={"name": "x", "counted": True}))
    assert first["steps"] is True


def test_a_client_that_is_not_up_yet_is_killed_on_its_node_if_it_does_not_end(
    cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(streams, "_END_S", 0.05)
    site = RunSite(SPEC, cluster, Recorder(tmp_path / "history.jsonl"))
    site.client_fleet.start_early()
    busy = cluster.remote("client-1").programs[-1]
    cluster.remote("client-1").signal(busy.pid, signal.SIGSTOP)
    site.client_fleet.close()
    assert cluster.left == []
    kills = [call.node for call in cluster.calls if call[1:] == ("signal", "SIGKILL")]
    assert "client-1" in kills
