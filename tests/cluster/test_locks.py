"""Whole locks on real servers: the sound ones are valid, and every broken one is detected."""

from __future__ import annotations

import pytest

from fencepost.checker.history.history import read
from fencepost.harness.campaigns import suite
from fencepost.workloads.scenarios import redlock
from fencepost.workloads.scenarios.scenario import Begin, Do, Inject, Scenario
from tests.cluster.conftest import has_holds


def verdicts(outcome):
    return {name: verdict.valid for name, verdict in outcome.verdicts.items()}


@pytest.mark.parametrize(("lock", "token"), [("redis", "incr"), ("redlock", "one")])
def test_without_faults_a_sound_lock_with_a_fence_keeps_every_promise(run_until, lock, token):
    outcome = run_until(has_holds, lock, guard="fenced", options={"token": token})

    assert outcome.valid is True, verdicts(outcome)
    assert set(outcome.verdicts) == {
        "faults", "lease_exclusion", "linearizable", "mutual_exclusion", "fencing", "ownership",
        "liveness", "store", "resource", "server-log",
    }  # fmt: skip
    assert outcome.results["stats"]["holds"] > 5


def test_a_lock_that_always_grants_fails_exclusion_fencing_and_the_resource(run_test):
    found = verdicts(run_test("broken-always-yes"))

    assert found["lease_exclusion"] is False
    assert found["mutual_exclusion"] is False
    assert found["fencing"] is False
    assert found["resource"] is False


def is_refuted(outcome):
    return outcome.verdicts["ownership"].valid is False


def is_tested(outcome):
    return outcome.verdicts["ownership"].details["untested"] == []


def test_a_release_without_an_owner_check_fails_ownership(run_until):
    outcome = run_until(is_refuted, "broken-no-owner-check", ttl_ms=300, hold="0..3ttl")

    assert outcome.verdicts["ownership"].valid is False, verdicts(outcome)
    assert "was answered ok" in outcome.verdicts["ownership"].evidence[0]["what"]


def test_the_same_work_with_an_owner_check_does_not(run_until):
    outcome = run_until(is_tested, "redis", ttl_ms=300, hold="0..3ttl")

    assert outcome.verdicts["ownership"].valid is True, verdicts(outcome)
    assert outcome.verdicts["lease_exclusion"].valid is True
    assert outcome.verdicts["ownership"].details["untested"] == []


def holder_dies() -> Scenario:
    steps = (
        Do("client-1", "acquire"),
        Inject("crash", "kill", ("client-1",), {"words": "client-1 is killed"}),
    )
    return Scenario("holder-dies", ("C15",), "", "", "none", steps, {}, {"retries": 0})


def test_a_lock_without_a_ttl_fails_liveness_when_its_holder_dies(run_test):
    outcome = run_test("broken-no-ttl", holder_dies(), ttl_ms=1000, liveness_bound_s=2.0)

    assert outcome.verdicts["liveness"].valid is False, verdicts(outcome)


def test_a_lock_with_a_ttl_is_free_again_when_its_holder_has_died(run_test):
    outcome = run_test("redis", holder_dies(), ttl_ms=1000)

    assert outcome.verdicts["liveness"].valid is True, verdicts(outcome)


@pytest.mark.parametrize(
    "scenario",
    [s for s in redlock.SUITE.scenarios if s.name in ("pause-after-acquire", "clock-jump")],
    ids=lambda s: f"{s.name}-{s.guard}",
)
def test_a_scenario_has_the_published_outcome(run_test, scenario):
    for _ in range(suite.TRIES):  # on a busy machine an answer may miss its timeout
        outcome = run_test("redlock", scenario, dict(scenario.options))
        if "run" not in outcome.verdicts:
            break

    assert "run" not in outcome.verdicts, outcome.verdicts["run"].summary
    assert {name: outcome.verdicts[name].valid for name in scenario.expected} == scenario.expected


def test_a_schedule_that_crashes_is_unknown_and_not_valid(run_test):
    again = Do("client-1", "release")
    steps = (Do("client-1", "acquire"), again, again)
    scenario = Scenario("not-so", (), "", "", "none", steps, {}, {"retries": 0})

    outcome = run_test("redis", scenario, ttl_ms=1000, concurrency=2)

    assert outcome.valid == "unknown"
    assert "step 3" in outcome.verdicts["run"].summary


def test_a_killed_client_leaves_its_open_op_as_info(run_test):
    # The network delays its request, so the client is surely in flight with it when it dies.
    hold = {"source": "client-1", "to": "storage"}
    steps = (
        Do("client-1", "acquire"),
        Do("client-1", "read"),
        Inject("delay", "delay", ("client-1", "storage"), hold),
        Begin("client-1", "write"),
        Inject("crash", "kill", ("client-1",), {}),
    )
    scenario = Scenario("killed", (), "", "", "none", steps, {}, {"retries": 0})

    outcome = run_test("redis", scenario, ttl_ms=1000, concurrency=2)

    ops = [op for op in read(outcome.folder / "history.jsonl") if op.process == 0]
    assert [(op.f, op.type) for op in ops] == [
        ("acquire", "invoke"), ("acquire", "ok"), ("read", "invoke"), ("read", "ok"),
        ("write", "invoke"), ("write", "info"),
    ]  # fmt: skip
    assert ops[-1].error[0] == "killed"
