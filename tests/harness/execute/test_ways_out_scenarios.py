"""A scenario completes, takes another course, or is interrupted."""

from __future__ import annotations

import os
import signal

from fencepost.checker.history import history
from fencepost.harness.execute.scripted import of_suite
from fencepost.workloads.scenarios.scenario import Do
from tests.harness.disturbed import (
    PAUSED,
    assert_judged_and_put_away,
    carried_out,
    scenario,
)


def test_a_scenario_runs_step_by_step_and_then_a_client_is_granted_the_lock(cluster):
    script = scenario(*PAUSED)
    spec = of_suite("short", "redis", script, 0)
    ended = carried_out(cluster, spec, [], script)
    assert_judged_and_put_away(ended, cluster)
    assert ended.results["run_notes"] == []
    # The write of the client that slept past its lease: the resource has no guard.
    assert ended.outcome.verdicts["resource"].valid is False
    ops = [op for op in history.read(ended.folder / "history.jsonl") if op.f != "close"]
    assert [(op.node, op.f, op.type) for op in ops[-4:]] == [
        ("client-2", "acquire", "invoke"),
        ("client-2", "acquire", "ok"),
        ("client-2", "release", "invoke"),
        ("client-2", "release", "ok"),
    ]


def test_a_step_with_another_outcome_ends_the_scenario_and_is_named(cluster):
    script = scenario(Do("client-1", "acquire"), Do("client-2", "acquire"), *PAUSED[1:])
    ended = carried_out(cluster, of_suite("short", "redis", script, 0), [], script)
    assert_judged_and_put_away(ended, cluster)
    assert ended.error is None
    assert "The schedule was not carried out: step 2, " in ended.notes
    assert "it completed as fail, but the schedule has ok" in ended.notes


def test_an_interrupted_scenario_sends_no_more_lock_requests(cluster, signals):
    def disturb(call):
        if call.what == "SIGCONT":
            os.kill(os.getpid(), signal.SIGINT)

    cluster.before = disturb
    script = scenario(*PAUSED)
    ended = carried_out(cluster, of_suite("short", "redis", script, 0), [], script)
    assert isinstance(ended.error, KeyboardInterrupt)
    assert_judged_and_put_away(ended, cluster)
    asked = [op for op in history.read(ended.folder / "history.jsonl") if op.f == "acquire"]
    assert len([op for op in asked if op.node == "client-2" and op.type == "ok"]) == 1
