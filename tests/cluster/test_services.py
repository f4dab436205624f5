"""ZooKeeper, etcd, PostgreSQL, MariaDB, NATS, a replicated Redis: locks and their differences."""

from __future__ import annotations

import pytest

from fencepost.workloads.scenarios.registry import SUITES
from fencepost.workloads.scenarios.suite import TimedRun
from tests.cluster.conftest import has_holds

COUNTS = {"zookeeper": 3, "etcd": 3, "postgres": 1, "mariadb": 1, "nats": 3, "redis": 2}
SERVERS = [f"{kind}-{n}" for kind, count in COUNTS.items() for n in range(1, count + 1)]


def verdicts(outcome):
    return {name: verdict.valid for name, verdict in outcome.verdicts.items()}


@pytest.mark.parametrize(
    ("lock", "options", "spec"),
    [
        ("zookeeper", {}, {"guard": "fenced"}),
        ("etcd", {}, {"guard": "transaction"}),
        ("etcd-lock-api", {"token": "revision"}, {"guard": "fenced"}),
        ("chubby", {}, {"shared": 0.3}),
        ("postgres", {"token": "sequence"}, {"guard": "fenced", "store": "postgres"}),
        ("postgres", {"mode": "row"}, {}),
        ("mariadb", {"token": "counter"}, {"guard": "fenced", "store": "mariadb"}),
        ("nats", {}, {"guard": "compare-and-set", "store": "nats"}),
        ("redis-replicated", {"wait": 1}, {}),
        ("zookeeper", {}, {"locks": 3, "guard": "fenced"}),
        ("etcd", {}, {"locks": 3, "guard": "transaction"}),
        ("chubby", {}, {"locks": 3, "guard": "check-sequencer", "shared": 0.3}),
        ("postgres", {"mode": "row"}, {"locks": 3, "store": "postgres"}),
        ("mariadb", {}, {"locks": 3, "store": "mariadb"}),
        ("nats", {}, {"locks": 3, "guard": "fenced"}),
    ],
)
def test_without_faults_a_lock_keeps_every_promise(run_until, lock, options, spec):
    outcome = run_until(has_holds, lock, options=options, ttl_ms=2000, **spec)

    assert outcome.valid is True, verdicts(outcome)
    assert outcome.results["stats"]["holds"] > 5


def entries():
    """One entry for each property that only one of them shows."""
    chosen = {
        "redis": ("failover", "both-stall/paired", "optimistic-postgres"),
        "zookeeper": ("pause-after-acquire/fenced", "holder-cut-off"),
        "etcd": (
            "transaction",
            "check-sequencer",
            "lock-delay",
            "expired-waiter-3.4",
            "expired-waiter-3.5",
        ),
        "postgres": ("pause-after-acquire-advisory",),
    }
    for suite, names in chosen.items():
        for name in names:
            name, _, guard = name.partition("/")
            found = [
                entry
                for entry in SUITES[suite].entries
                if entry.name == name and guard in ("", entry.guard)
            ]
            assert len(found) == 1, (suite, name)
            yield pytest.param(SUITES[suite].lock, found[0], id=f"{suite}-{name}")


@pytest.mark.parametrize(("lock", "scenario"), list(entries()))
def test_a_schedule_has_the_published_outcome(run_test, lock, scenario):
    outcome = run_test(lock, scenario)

    found = verdicts(outcome)
    assert found["faults"] is True, outcome.verdicts["faults"].summary
    assert "run" not in found, outcome.verdicts["run"].summary
    expected = dict(scenario.expected)
    assert {name: found[name] for name in expected} == expected


def test_a_herd_is_recognized_by_its_wakeups(run_test):
    (herd,) = (e for e in SUITES["zookeeper"].entries if e.name == "herd")
    assert isinstance(herd, TimedRun)
    outcome = run_test(herd.lock, **herd.settings)

    assert outcome.verdicts["liveness"].valid is False
    assert "wakes a herd" in outcome.verdicts["liveness"].summary
    assert outcome.verdicts["lease_exclusion"].valid is True
