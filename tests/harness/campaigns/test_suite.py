"""A suite compares each run with the published outcome; its results when it ends early."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.checker.verdict import Verdict
from fencepost.harness.campaigns import campaign, suite
from fencepost.harness.command.suite import chosen
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.results import results
from fencepost.report.exports.batches import Collected, entry, markdown
from fencepost.report.pages import suite as page
from fencepost.workloads.scenarios.registry import SUITES
from fencepost.workloads.scenarios.scenario import LeaseOver, Pass, TtlOver, plain
from tests.harness.campaigns.places import Places

GOOD = {"faults": Verdict(True, "All."), "resource": Verdict(True, "1 write.")}


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    return tmp_path


@pytest.fixture
def controls():
    """Return two runs that expect no violation, and one that expects nothing."""
    items = suite.entries("redis", 7)
    return [item for item in items if item.name in ("control", "random")]


def row_of(item, *outcomes):
    """The entry that a page shows of these runs."""
    plan = suite.Plan("redis" if item.rate is None else "rates", 7, seeds=len(outcomes))
    (key,) = [key for key, one in plan.entries.items() if one.entry is item.entry]
    made = campaign.Campaign(plan)
    items = [one for one in plan.items(1) if one.row == key]
    made.begin()
    for one, found in zip(items, outcomes, strict=True):
        made.add(one, found, "")
    return page.read(made.folder)[0]


def told(row):
    return Collected("suite", "", None, [], {row["test"]: entry(row)})


def outcome(item, **changed):
    verdicts = {"faults": Verdict(True, "All."), **{n: Verdict(v, "") for n, v in
        item.expected.items()}, **changed}  # fmt: skip
    return Outcome(results.create(item.spec.name), True, verdicts, {})


@pytest.mark.parametrize("name", SUITES)
def test_every_run_of_a_suite_has_a_name_of_its_own_and_the_seed(name):
    items = suite.entries(name, 7)
    assert {item.spec.seed for item in items} == {7}
    names = [item.spec.name for item in items]
    assert len({*names}) == len(names)


def test_a_scenario_is_chosen_in_the_suites_that_have_it_and_no_other_suite_runs():
    found = {name: suite.entries(name, 7) for name in ("redis", "etcd", "postgres")}
    items = chosen(found, ["failover-s", "queue"])
    names = {name: [item.name for item in items[name]] for name in items}
    assert names == {"redis": ["failover-sentinel"], "etcd": ["queue"]}


def test_a_run_of_an_elector_has_the_figures_of_its_election(controls, folder):
    item = controls[0]
    assert "election" not in row_of(item, outcome(item))
    led = Verdict(False, "Two leaders worked at once 1 time, for at most 2.500 s.")
    found = outcome(item)
    found.verdicts["leadership"] = led
    assert row_of(item, found)["election"] == led.summary


def test_a_run_with_another_outcome_gives_the_reason(controls, folder):
    item = controls[0]
    broken = Verdict(False, "Two writes were lost.")
    row = row_of(item, outcome(item, resource=broken))
    assert (row["as_expected"], row["observed"]["resource"]) == (False, False)
    assert row["why"] == "resource is False, True was expected: Two writes were lost."


def test_without_proof_of_its_faults_nothing_follows_from_a_run(controls, folder):
    item = controls[0]
    unproved = Verdict("unknown", "No receipt.")
    row = row_of(item, outcome(item, faults=unproved))
    assert (row["as_expected"], row["why"]) == (False, "faults: No receipt.")
    cut = outcome(item, run=Verdict("unknown", "Step 2 came out as fail."))
    assert row_of(item, cut)["why"] == "run: Step 2 came out as fail."


def test_a_violation_in_a_run_without_expectations_is_a_finding(controls, folder):
    item = controls[-1]
    assert not item.expected
    row = row_of(item, outcome(item, resource=Verdict(False, "")))
    assert (row["as_expected"], row["observed"]) == (True, {"faults": True, "resource": False})
    assert page.tally([row]) == "0 of 0 came out as published."
    assert "a finding; broken: resource" in markdown("redis", told(row))


class Coming(Places):
    """Each run comes to what is expected of it."""

    def __init__(self, entries, **fails):
        super().__init__()
        self.entries = {one.spec.name: one for one in entries}
        self.fails = fails

    def run(self, item, cluster):
        self.ran.append(item.spec)
        if error := self.fails.get(item.spec.name):
            raise error
        return outcome(self.entries[item.row])


def test_a_suite_that_is_interrupted_leaves_what_it_found_and_is_resumed(controls, folder):
    plan = suite.Plan("redis", 7, only=tuple(one.name for one in controls))
    made = campaign.create(plan, "suite-redis")
    places = Coming(plan.entries.values())
    places.fails[list(plan.entries)[1]] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        places.carry_out(made)
    run = (folder / "suite-redis" / "latest").resolve()
    assert [row["scenario"] for row in page.read(run)] == ["control"]
    assert page.render(run).exists()
    again = campaign.resumed("latest", "suite", suite.from_json, lambda words: None)
    places.fails, places.ran = {}, []
    assert again.plan == plan and places.carry_out(again)
    assert [spec.name for spec in places.ran] == list(plan.entries)[1:]
    assert [row["test"] for row in page.read(run)] == list(plan.entries)


def test_the_runs_of_a_suite_come_in_its_order_on_one_cluster(folder):
    plan = suite.Plan("rates", 7)
    items = plan.items(1)
    assert len({item.kind for item in items}) == 1
    assert [item.row for item in items] == [
        key for key, one in plan.entries.items() for _ in (one.specs if one.rate else [0])
    ]
    assert [item.seed for item in items if item.row == items[0].row] == [7, 8, 9]


def test_a_scenario_that_waits_for_a_lease_takes_longer():
    item = next(item for item in suite.Plan("etcd", 7).items(1) if waits(item.scenario) == 1)
    without = replace(item.scenario, steps=())
    longer_s = item.takes_s - suite.takes_s(item.spec, without)
    assert longer_s == pytest.approx(item.spec.ttl_ms / 1000)


def waits(scenario):
    steps = [plain(step) for step in scenario.steps] if scenario else []
    if any(isinstance(step, Pass) for step in steps):
        return 0
    return sum(isinstance(step, LeaseOver | TtlOver) for step in steps)


def test_a_run_that_crashes_is_an_entry_and_the_next_run_has_a_new_cluster(controls, folder):
    plan = suite.Plan("redis", 7, only=tuple(one.name for one in controls))
    made = campaign.create(plan, "suite-redis")
    places = Coming(plan.entries.values(), **{next(iter(plan.entries)): Crashed("it is down")})
    assert places.carry_out(made) and len(places.ups) == 2
    first, *others = page.read(made.folder)
    assert (first["as_expected"], first["why"], first["observed"]) == (
        False, "run: it is down", {}
    )  # fmt: skip
    assert all(row["as_expected"] for row in others)


def test_a_suite_with_an_unknown_server_is_refused(controls):
    with pytest.raises(BadArguments):
        suite.entries("redis", 7, {"redis": "0.1"})


@pytest.fixture
def rate():
    (item,) = [one for one in suite.entries("rates", 7, seeds=2) if one.name == "one-redis-kill"]
    return item


def counted(monkeypatch, *counts):
    found = iter(counts)
    monkeypatch.setattr(suite.rate_counts, "counts", lambda outcome, of: next(found))


def test_a_rate_has_a_run_for_each_seed_and_adds_them_up(rate, folder, monkeypatch):
    assert [spec.seed for spec in rate.specs] == [7, 8]
    counted(monkeypatch, {"data": (1, 100)}, {"data": (2, 100)})
    plan = suite.Plan("rates", 7, seeds=2, only=(rate.name,))
    made = campaign.create(plan, "suite-rates")
    places = Coming(plan.entries.values())
    assert places.carry_out(made)
    assert [spec.seed for spec in places.ran] == [7, 8]
    (row,) = page.read(made.folder)
    assert (row["rate"]["shares"]["data"]["count"], row["rate"]["shares"]["data"]["of"]) == (3, 200)
    assert [run["seed"] for run in row["rate"]["runs"]] == [7, 8]
    assert row["as_expected"] and page.tally([row]) == "One rate was counted, over 2 runs."
    assert "3 of 200 holds" in markdown("rates", told(row))


def test_a_run_of_a_rate_without_proof_of_its_faults_is_not_counted(rate, folder, monkeypatch):
    counted(monkeypatch, {"data": (1, 100)})
    unproved = outcome(rate, faults=Verdict("unknown", "No receipt."))
    row = row_of(rate, outcome(rate), unproved)
    assert row["rate"]["shares"]["data"]["of"] == 100
    assert (row["as_expected"], row["why"]) == (
        False,
        "1 of 2 runs could not be counted: faults: No receipt.",
    )


def test_lock_costs_are_as_expected_if_each_is_slower_than_one_redis_server(folder):
    (item,) = [one for one in suite.entries("rates", 7) if one.name == "costs"]
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
        return suite.cost_line(item, {"locks": locks, "versions": versions})

    good = row(redis=0.5, redlock=2.5)
    assert (good["as_expected"], good["versions"]) == (True, {"redis": "Redis 7.0"})
    assert good["cost"]["locks"][1] == {"lock": "redlock", "ms": 2.5, "trips": 2.0, "rate": 900.0}
    assert "100,000 a second" in good["cost"]["published"]
    cheap = row(redis=0.5, redlock=0.5)
    assert (cheap["as_expected"], cheap["why"]) == (False, "no slower than redis: redlock")
    rows = [{"expected": {}, **row} for row in (good, cheap)]
    assert page.tally(rows) == "1 of 2 came out as published."
