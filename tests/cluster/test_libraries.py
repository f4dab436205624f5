"""Every library on real servers: without faults valid, under faults its worker holds on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.cluster.compose import ComposeCluster
from harness.session import session
from workloads.locks.libraries.catalogue import LIBRARIES
from workloads.locks.registry import LOCKS

CLIENTS = [f"client-{n}" for n in range(1, 6)]
SERVERS = {
    f"{lock.kind}-{number}": lock for lock in LIBRARIES for number in range(1, lock.servers + 1)
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ComposeCluster]:
    needed = {lock.library for lock in LIBRARIES}
    with session([*SERVERS, "storage", *CLIENTS], print, libraries=needed) as nodes:
        yield nodes


@pytest.mark.parametrize("lock", [lock.name for lock in LIBRARIES])
def test_without_faults_a_library_keeps_every_promise(run_test, lock):
    token = LOCKS[lock].has_token(LOCKS[lock].read_options({}))
    outcome = run_test(lock, guard="fenced" if token else "none")

    assert outcome.valid is True, {n: v.summary for n, v in outcome.verdicts.items() if not v.valid}
    assert outcome.results["stats"]["holds"] > 20


@pytest.mark.parametrize("lock", ["curator", "node-redlock"])
def test_a_client_in_another_language_is_paused_and_killed_like_any(run_test, lock):
    outcome = run_test(lock, nemesis=("pause", "kill"), seed=8, time_s=15.0, interval_s=3.0)

    assert outcome.verdicts["faults"].valid is True, outcome.verdicts["faults"].summary
    assert "run" not in outcome.verdicts
    assert outcome.verdicts["store"].valid is True
    killed = [fault for fault in outcome.results["faults"] if fault["family"] == "kill"]
    assert any(target.startswith("client") for fault in killed for target in fault["targets"])
    assert outcome.results["stats"]["holds"] > 20
