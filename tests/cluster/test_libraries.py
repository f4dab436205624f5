"""Every library on real servers: valid without faults, and its worker survives faults."""

from __future__ import annotations

import pytest

from fencepost.checker.history.history import SPONTANEOUS, read
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.caused import unnamed
from fencepost.workloads.scenarios.registry import SUITES
from fencepost.workloads.scenarios.scenario import Do, Heal, Scenario
from fencepost.workloads.scenarios.schedules import cut
from tests.cluster.conftest import has_holds

LIBRARIES = [lock for lock in LOCKS.values() if lock.library]
PACKAGED = {lock.library for lock in LIBRARIES}
SERVERS = {
    f"{lock.kind}-{number}": lock for lock in LIBRARIES for number in range(1, lock.servers + 1)
}


# One of them is enough where a library has not changed; all are in the nightly workflow. A leader
# whose lease lasts a minute is in the suite of leaders.
@pytest.mark.parametrize(
    "lock",
    [
        pytest.param(lock.name, marks=[] if lock.name == "redis-py" else pytest.mark.long)
        for lock in LIBRARIES
        if lock.least_ttl_ms < 10_000
    ],
)
def test_without_faults_a_library_keeps_every_promise(run_until, lock):
    token = LOCKS[lock].has_token(LOCKS[lock].read_options({}))
    outcome = run_until(has_holds, lock, guard="fenced" if token else "none")

    found = {name: (verdict.valid, verdict.summary) for name, verdict in outcome.verdicts.items()}
    assert not any(valid is False for valid, _ in found.values()), found
    # Without faults the leader of jobs may never change.
    assert outcome.valid is True or found["jobs"][0] == "unknown", found
    stats = outcome.results["stats"]
    assert stats["holds"] > 5
    # Each of three clients closes at its end, and after each op of unknown outcome.
    assert stats["by_f"]["close"]["ok"] >= 3
    assert stats["by_f"]["close"]["fail"] == stats["by_f"]["close"]["info"] == 0


def test_sentinels_promote_a_server_that_has_not_received_the_grant(run_test):
    (scenario,) = (e for e in SUITES["redis"].scenarios if e.name == "failover-sentinel")
    outcome = run_test(scenario.lock, scenario)

    found = {name: verdict.valid for name, verdict in outcome.verdicts.items()}
    assert "run" not in found, outcome.verdicts["run"].summary
    expected = {"faults": True, **scenario.expected}
    assert {name: found[name] for name in expected} == expected
    assert unnamed(scenario, outcome.verdicts) == []


@pytest.mark.parametrize("lock", ["curator", "node-redlock"])
def test_a_release_of_unknown_outcome_is_followed_by_a_close_and_then_by_a_successor(
    run_test, lock
):
    servers = [f"{LOCKS[lock].kind}-{n + 1}" for n in range(LOCKS[lock].servers)]
    steps = (
        Do("client-1", "acquire"),
        cut("cut", "client-1", servers),
        Do("client-1", "release", expect="failing"),
        Heal("cut"),
        Do("client-1", "acquire", again=True),
    )
    scenario = Scenario("cut-off", (), "", "", "none", steps, {}, {})

    outcome = run_test(lock, scenario, ttl_ms=2000, concurrency=2)

    assert "run" not in outcome.verdicts, outcome.verdicts["run"].summary
    history = read(outcome.folder / "history.jsonl")
    ops = [(op.process, op.f, op.type) for op in history if op.node == "client-1"]
    ops = [op for op in ops if op[1] not in SPONTANEOUS]
    assert ops[:6] == [
        (0, "acquire", "invoke"), (0, "acquire", "ok"), (0, "release", "invoke"),
        (0, "release", "info"), (0, "close", "invoke"), (0, "close", "ok"),
    ]  # fmt: skip
    assert {process for process, _, _ in ops[6:]} == {2}
    assert ops[-2:] == [(2, "close", "invoke"), (2, "close", "ok")]


@pytest.mark.parametrize("lock", ["curator", "node-redlock"])
def test_a_client_in_another_language_is_paused_and_killed_like_any(run_test, lock):
    outcome = run_test(lock, nemesis=("pause", "kill"), seed=8, time_s=15.0, interval_s=3.0)

    assert outcome.verdicts["faults"].valid is True, outcome.verdicts["faults"].summary
    assert "run" not in outcome.verdicts
    assert outcome.verdicts["store"].valid is True
    killed = [fault for fault in outcome.results["faults"] if fault["family"] == "kill"]
    assert any(target.startswith("client") for fault in killed for target in fault["targets"])
    assert outcome.results["stats"]["holds"] > 5
