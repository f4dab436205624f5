"""A suite compares each run with the published outcome; its results when it ends early."""

from __future__ import annotations

import json

import pytest

from fencepost.checker.verdict import Verdict
from fencepost.harness.campaigns import suite
from fencepost.harness.command.suite import chosen
from fencepost.harness.errors import BadArguments
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.results import results
from fencepost.workloads.scenarios.registry import SUITES

GOOD = {"faults": Verdict(True, "All."), "resource": Verdict(True, "1 write.")}


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    return tmp_path


@pytest.fixture
def controls():
    """Return two runs that expect no violation, and one that expects nothing."""
    items = suite.items("redis", 7)
    return [item for item in items if item.name in ("control", "random")]


def outcome(item, **changed):
    verdicts = {"faults": Verdict(True, "All."), **{n: Verdict(v, "") for n, v in
        item.expected.items()}, **changed}  # fmt: skip
    return Outcome(results.create(item.spec.name), True, verdicts, {})


@pytest.mark.parametrize("name", SUITES)
def test_every_run_of_a_suite_has_a_name_of_its_own_and_the_seed(name):
    items = suite.items(name, 7)
    assert {item.spec.seed for item in items} == {7}
    names = [item.spec.name for item in items]
    assert len({*names}) == len(names)


def test_a_scenario_is_chosen_in_the_suites_that_have_it_and_no_other_suite_runs():
    found = {name: suite.items(name, 7) for name in ("redis", "etcd", "postgres")}
    items = chosen(found, ["failover-s", "queue"])
    names = {name: [item.name for item in items[name]] for name in items}
    assert names == {"redis": ["failover-sentinel"], "etcd": ["queue"]}


def test_a_run_with_another_outcome_gives_the_reason(controls, folder):
    item = controls[0]
    broken = Verdict(False, "Two writes were lost.")
    row = suite.row(item, outcome(item, resource=broken), folder)
    assert (row["as_expected"], row["observed"]["resource"]) == (False, False)
    assert row["why"] == "resource is False, True was expected: Two writes were lost."


def test_without_proof_of_its_faults_nothing_follows_from_a_run(controls, folder):
    item = controls[0]
    unproved = Verdict("unknown", "No receipt.")
    row = suite.row(item, outcome(item, faults=unproved), folder)
    assert (row["as_expected"], row["why"]) == (False, "faults: No receipt.")
    cut = outcome(item, run=Verdict("unknown", "Step 2 came out as fail."))
    assert suite.row(item, cut, folder)["why"] == "run: Step 2 came out as fail."


def test_a_violation_in_a_run_without_expectations_is_a_finding(controls, folder):
    item = controls[-1]
    assert not item.expected
    row = suite.row(item, outcome(item, resource=Verdict(False, "")), folder)
    assert (row["as_expected"], row["observed"]) == (True, {"faults": True, "resource": False})
    assert suite.tally([row]) == "0 of 0 came out as published."
    assert "(a finding): resource" in suite.summary("redis", 7, [row])


def test_an_interrupted_suite_leaves_its_results_and_a_report(controls, folder):
    def carry_out(item, spec):
        if item is controls[1]:
            raise KeyboardInterrupt
        return outcome(item)

    said = []
    with pytest.raises(KeyboardInterrupt):
        suite.run("redis", controls, carry_out, None, lambda row, _: said.append(row["scenario"]))
    run = (folder / "suite-redis" / "latest").resolve()
    assert [row["scenario"] for row in json.loads((run / "suite.json").read_text())] == said
    assert said == ["control"]
    assert (run / "report.html").exists()


def test_a_suite_with_an_unknown_server_is_refused(controls):
    with pytest.raises(BadArguments):
        suite.items("redis", 7, {"redis": "0.1"})


@pytest.fixture
def rate():
    (item,) = [one for one in suite.items("rates", 7, seeds=2) if one.name == "one-redis-kill"]
    return item


def counted(monkeypatch, *counts):
    found = iter(counts)
    monkeypatch.setattr(suite.rate_counts, "counts", lambda outcome, of: next(found))


def test_a_rate_has_a_run_for_each_seed_and_adds_them_up(rate, folder, monkeypatch):
    assert [spec.seed for spec in rate.specs] == [7, 8]
    counted(monkeypatch, {"data": (1, 100)}, {"data": (2, 100)}, {"data": (3, 50)})
    carried, said = [], []

    def carry_out(item, spec):
        carried.append(spec.seed)
        return outcome(item)

    where, rows = suite.run("rates", [rate], carry_out, None, lambda row, _: said.append(row))
    assert carried == [7, 8] and len(said) == 1
    # Each run rewrites the row.
    (row,) = rows
    assert (row["rate"]["shares"]["data"]["count"], row["rate"]["shares"]["data"]["of"]) == (5, 150)
    assert row["as_expected"] and suite.tally(rows) == "One rate was counted, over 2 runs."
    assert json.loads((where / "suite.json").read_text()) == json.loads(json.dumps(rows))
    assert "5 of 150 holds" in suite.summary("rates", 7, rows)


def test_a_run_of_a_rate_without_proof_of_its_faults_is_not_counted(rate, folder, monkeypatch):
    counted(monkeypatch, {"data": (1, 100)})
    unproved = outcome(rate, faults=Verdict("unknown", "No receipt."))
    row = suite.rate_row(rate, [outcome(rate), unproved], folder)
    assert row["rate"]["shares"]["data"]["of"] == 100
    assert (row["as_expected"], row["why"]) == (
        False,
        "1 of 2 runs could not be counted: faults: No receipt.",
    )


def test_lock_costs_are_as_expected_if_each_is_slower_than_one_redis_server(folder):
    (item,) = [one for one in suite.items("rates", 7) if one.name == "costs"]
    assert [spec.lock for spec in item.specs] == ["redis", "redlock", "zookeeper", "etcd"]

    def row(**ms):
        locks = [
            {
                "lock": lock,
                "phases": {"alone": {"pair_p50": took}, "apart": {"rate": 900.0}},
                "trips": {"acquire": 1.0, "release": 1.0},
            }
            for lock, took in ms.items()
        ]
        versions = {"redis": "Redis 7.0", "docker": "20"}
        return suite.cost_row(item, folder, {"locks": locks, "versions": versions}, folder)

    good = row(redis=0.5, redlock=2.5)
    assert (good["as_expected"], good["versions"]) == (True, {"redis": "Redis 7.0"})
    assert good["cost"]["locks"][1] == {"lock": "redlock", "ms": 2.5, "trips": 2.0, "rate": 900.0}
    assert "100,000 a second" in good["cost"]["published"]
    cheap = row(redis=0.5, redlock=0.5)
    assert (cheap["as_expected"], cheap["why"]) == (False, "no slower than redis: redlock")
    assert suite.tally([good, cheap]) == "1 of 2 came out as published."
