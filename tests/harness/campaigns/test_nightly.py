"""A nightly run keeps its budget and compares its outcomes with the baseline.

A fake replaces the processes that run the stages: it leaves the folders that they would leave.
"""

from __future__ import annotations

import json
import signal
import sys

import msgspec
import pytest

from fencepost.harness.campaigns import baseline, nightly, outcomes
from fencepost.harness.campaigns.baseline import Known
from fencepost.harness.campaigns.outcomes import Entry
from fencepost.harness.errors import BadArguments
from fencepost.harness.results import results, run_index
from tests.harness.campaigns.nights import Parts, night, scenario, suite_of
from tests.report.matrices import cell, violated
from tests.report.matrices import run as counted
from tests.report.matrices import stored as matrix_of


@pytest.fixture(autouse=True)
def root(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


def marked(*marks, sure=False, **more):
    return Entry("suite/it", sure=sure, marks=list(marks), **more)


def state(one, known):
    baseline.judge([one], {one.key: Known(known)} if known is not None else {})
    return one.state


def test_a_scenario_with_the_published_outcome_has_one_mark_and_is_sure():
    (one,) = suite_of(scenario("a"))
    assert (one.key, one.marks, one.sure) == ("suite/a", ["as published"], True)
    assert one.expected == "resource broken"


def test_a_scenario_with_another_outcome_names_its_observation():
    (one,) = suite_of(scenario("a", False, "resource is True, False was expected: fine"))
    assert one.marks == ["NOT as published", "resource holds"]


@pytest.mark.parametrize(
    ("why", "observed", "marks", "crashed"),
    [
        ("run: the server did not come up", True, [], True),
        ("faults: no receipt", True, ["unknown"], False),
        ("resource is unknown", "unknown", ["unknown"], False),
    ],
)
def test_a_run_that_crashed_or_was_not_judged_has_no_outcome(why, observed, marks, crashed):
    (one,) = suite_of(scenario("a", False, why, observed={"resource": observed}))
    assert (one.marks, one.crashed) == (marks, crashed)


def test_a_cell_has_its_marks_its_rates_and_its_holds():
    folder = results.create("matrix")
    cells = [
        cell(counted(1000)),
        cell(violated("data", 3), fault="kill"),
        cell(fault="disk", reason="no disk"),
    ]
    results.write(folder / "matrix.json", matrix_of(*cells))
    calm, struck = outcomes.of_matrix(folder)
    assert (calm.key, calm.marks, calm.holds) == ("matrix/redis/none/none", ["kept"], 1000)
    assert struck.marks == ["data damaged"] and struck.rates["data"]["count"] == 3
    assert not calm.sure
    assert outcomes.figures([calm, struck]).rates["data"].count == 3


@pytest.mark.parametrize(
    "place",
    ["../../leases-etcd/20260102T030405.000000Z", "results/leases-etcd/20260102T030405.000000Z"],
)
def test_a_defect_s_run_is_named_as_the_results_folder_has_it(place):
    folder = results.create("track-record")
    rows = [
        {"key": "a/it", "outcome": "seen", "run": place},
        {"key": "b/it", "outcome": "not played"},
    ]
    results.write(folder / "track-record.json", rows)
    seen, lost = outcomes.of_record(folder)
    assert (seen.run, seen.marks) == ("leases-etcd/20260102T030405.000000Z", ["seen"])
    assert lost.crashed and lost.marks == []


@pytest.mark.parametrize(
    ("one", "known", "expected"),
    [
        (marked("as published", sure=True), ["as published"], "same"),
        (marked("NOT as published", "x holds", sure=True), ["as published"], "changed"),
        (marked("as published", sure=True), ["NOT as published", "x holds"], "changed"),
        (marked("as published", sure=True), None, "new"),
        (marked("NOT as published", sure=True), None, "changed"),
        (marked("unknown", sure=True), ["as published"], "unknown"),
        (marked("unknown", sure=True), ["unknown"], "unknown"),
        (marked("unknown"), ["kept"], "unknown"),
        (marked("broken", "unknown"), ["kept"], "changed"),
        (marked("broken", "unknown"), ["broken"], "unknown"),
        (marked("broken"), ["kept"], "changed"),
        (marked("broken"), ["broken", "kept"], "same"),
        (marked("kept"), ["broken"], "not seen this time"),
        (marked("clients believed"), ["data damaged", "kept"], "not seen this time"),
        (marked("data damaged"), ["clients believed", "kept"], "changed"),
        (marked("broken", "clients believed"), ["data damaged"], "changed"),
        (marked("kept"), ["kept"], "same"),
        (marked("kept"), ["unknown"], "same"),
        (marked("broken"), None, "new"),
        (marked(crashed=True), ["as published"], "crashed"),
        (marked(), ["kept"], "not run"),
    ],
)
def test_an_outcome_is_compared_with_the_baseline(one, known, expected):
    assert state(one, known) == expected


@pytest.mark.parametrize(
    ("one", "known", "code"),
    [
        (marked("broken"), ["kept"], 1),
        (marked(crashed=True), ["kept"], 2),
        (marked("unknown"), ["kept"], 2),
        (marked("unknown"), ["kept", "unknown"], 0),
        (marked("broken"), ["broken"], 0),
        (marked("kept"), ["broken"], 0),
        (marked(), ["kept"], 0),
    ],
)
def test_a_nightly_run_fails_on_changed_outcomes_and_not_on_known_ones(one, known, code):
    state(one, known)
    assert baseline.red([one]) == code


def test_a_baseline_adds_outcomes_that_vary_and_keeps_its_own():
    known = {}
    list(baseline.merged(known, [marked("broken")], "first", 1))
    assert list(baseline.merged(known, [marked("kept")], "second", 2)) == [
        ("suite/it", ["broken"], ["broken", "kept"])
    ]
    assert known["suite/it"].seed == 2
    assert list(baseline.merged(known, [marked(crashed=True), marked()], "third", 3)) == []


def test_a_baseline_is_the_same_file_whatever_the_order(tmp_path):
    first, second = Known(["kept"]), Known(["broken"])
    baseline.write(tmp_path / "a.json", {"a": first, "b": second})
    baseline.write(tmp_path / "b.json", {"b": second, "a": first})
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert baseline.read(tmp_path / "a.json") == {"a": first, "b": second}


def test_each_stage_has_its_share_of_the_budget_and_passes_the_rest_on():
    parts = Parts()
    _, made = night(parts)
    assert [words[0] for words, _ in parts.ran][:2] == ["suite", "matrix"]
    shares = {part.name: part.share_s for part in made.parts}
    assert shares["suites"] == pytest.approx(270, abs=1)
    # Nothing was used: the matrix has five elevenths of the whole budget.
    assert shares["matrix"] == pytest.approx(272.7, abs=2)
    assert 240 < shares["track-record"] <= 301
    # The whole budget, less the time of this test.
    assert 480 < shares["defects"] <= 600
    assert all("--seed" in words and "7" in words for words, _ in parts.ran)


def test_stages_beyond_the_budget_are_reported_and_completed_ones_kept():
    _, made = night(Parts(up=("suite",)))
    states = {one.key: one.state for one in made.entries}
    assert states["suite/redis-control-none"] == "new"
    left = [one for one in made.entries if one.key == "suite/redis-both-stall-fenced"]
    assert [(one.state, one.said) for one in left] == [
        ("not run", "it used up its share of the budget")
    ]


def test_a_stage_that_exits_with_0_and_leaves_no_results_has_crashed():
    _, made = night(Parts())
    lost = [one for one in made.entries if one.key.startswith(("matrix", "track-record/"))]
    assert lost and {one.state for one in lost} == {"crashed"}


def test_a_stage_that_crashes_counts_as_changed():
    keys = "suite/redis-control-none"
    _, made = night(Parts({"suite": 255}), known={keys: Known(["as published"])})
    (one,) = [one for one in made.entries if one.key == keys]
    assert (one.state, one.said) == ("crashed", "it ended with exit code 255")
    assert baseline.red(made.entries) == 2


def test_a_nightly_run_is_read_back_listed_and_compared():
    folder, made = night(Parts())
    again, _ = night(Parts(up=("suite",)))
    assert msgspec.to_builtins(nightly.read(folder)) == msgspec.to_builtins(made)
    one, other = run_index.find(str(folder)), run_index.find("nightly")
    assert (one.kind, other.folder) == ("night", again)
    assert run_index.alike(one, other)
    assert (folder / "report.html").read_text().count("redis-control-none") > 0


@pytest.mark.parametrize("ours", [signal.default_int_handler, signal.SIG_IGN])
def test_a_stage_that_times_out_is_interrupted(monkeypatch, ours):
    """Use a real process, which would take a minute.

    This also covers a nightly run in a shell's background, where interrupts are ignored.
    """
    before = signal.signal(signal.SIGINT, ours)
    code = "import time, sys; sys.stdout.write('x'); time.sleep(60)"
    monkeypatch.setattr(nightly, "_COMMAND", (sys.executable, "-c", code))
    try:
        ended, up = nightly.process([], 0.3)
    finally:
        signal.signal(signal.SIGINT, before)
    assert up and ended != 0


def test_a_folder_that_is_no_nightly_run_is_refused(root):
    (root / "x").mkdir()
    (root / "x" / "night.json").write_text('{"schema": 99, "seed": 1, "budget_s": 1, "began": ""}')
    with pytest.raises(BadArguments, match="its schema is 99"):
        nightly.read(root / "x")


@pytest.mark.parametrize(
    "figures",
    [[], {"rates": {"data": 3}}, {"rates": {"data": {"count": 2, "of": 1}}},
     {"rates": {"data": {"count": -1, "of": 1}}}, {"acquire_p50_ms": {"redis": "fast"}}],
)  # fmt: skip
def test_a_nightly_run_with_damaged_figures_is_refused(tmp_path, figures):
    night = {"schema": nightly.SCHEMA, "seed": 1, "budget_s": 1.0, "began": "x", "figures": figures}
    (tmp_path / nightly.FILE).write_text(json.dumps(night))
    with pytest.raises(BadArguments, match="cannot be used"):
        nightly.read(tmp_path)
