"""The report of a suite first says whether every scenario had the published outcome."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from fencepost.report.pages.suite import render
from fencepost.report.stored import ReportError


def entry(scenario: str = "client-pause", guard: str = "none", **more: Any) -> dict[str, Any]:
    return {
        "test": f"{scenario}-{guard}",
        "run": f"../{scenario}-{guard}/20260102T030405Z",
        "scenario": scenario,
        "guard": guard,
        "claim": "C4",
        "source": "Martin Kleppmann, How to do distributed locking, 2016",
        "what": "A client pauses past its lease & writes.",
        "expected": {"lease_exclusion": True, "mutual_exclusion": False},
        "observed": {"lease_exclusion": True, "mutual_exclusion": False, "liveness": "unknown"},
        "as_expected": True,
        "why": "",
    } | more


def page(folder: Path, entries: Any) -> str:
    (folder / "suite.json").write_text(json.dumps(entries))
    return render(folder).read_text(encoding="utf-8")


def headline(html: str) -> str:
    found = re.search(r"<h1>(.*?)</h1>", html, re.S)
    assert found
    return unescape(found.group(1))


def test_all_as_published_is_one_sentence(tmp_path):
    html = page(tmp_path, [entry(), entry(guard="fenced"), entry("control")])
    assert headline(html) == "All 2 scenarios had the published outcome, in 3 runs."
    assert html.count('class="expected">as predicted<') == 6
    assert "mismatch" not in html.split("</style>")[1]


def test_the_figures_of_an_election_stand_below_its_run(tmp_path):
    said = "Two leaders worked at once 1 time, for at most 2.500 s & 2.500 s in total."
    html = page(tmp_path, [entry(), entry("reset", election=said)])
    assert unescape(html).count(said) == 1
    assert headline(html) == "All 2 scenarios had the published outcome, in 2 runs."


def test_a_scenario_with_another_outcome_is_named_and_marked(tmp_path):
    odd = entry(
        "clock-jump",
        observed={"lease_exclusion": False, "mutual_exclusion": False},
        as_expected=False,
        why="lease_exclusion: expected true",
    )
    html = page(tmp_path, [entry(), odd])
    assert headline(html) == "1 of 2 scenarios did not have the published outcome: clock-jump."
    assert html.count('<td class="mismatch">') == 1
    assert "predicted: holds" in html
    assert "lease_exclusion: expected true" in html


def test_a_checker_that_was_predicted_and_never_ran_is_a_mismatch(tmp_path):
    html = page(tmp_path, [entry(observed={"lease_exclusion": True}, as_expected=False)])
    assert html.count('<td class="mismatch">') == 1
    assert "not checked" in html


def test_a_run_without_prediction_is_a_finding_and_no_failure(tmp_path):
    free = entry("random", expected={}, observed={"lease_exclusion": False}, as_expected=False)
    html = page(tmp_path, [entry(), free])
    assert headline(html) == "The one scenario had the published outcome, in 1 run."
    assert "neither a pass nor a failure" in html


def test_each_run_is_linked_by_a_path_relative_to_the_suite(tmp_path):
    html = page(
        tmp_path, [entry(), entry("evil", run="javascript:alert(1)"), entry("abs", run="/x")]
    )
    assert re.findall(r'<a href="(.*?)"', html) == [
        "../client-pause-none/20260102T030405Z/report.html"
    ]


def test_every_value_is_escaped(tmp_path):
    evil = "<script>alert(1)</script>\"'&"
    keys = ("scenario", "guard", "claim", "source", "what", "why", "test")
    row = entry(**dict.fromkeys(keys, evil), observed={evil: True}, as_expected=False)
    assert "<script>" not in page(tmp_path, [row])


def test_an_entry_may_lack_all_that_is_optional(tmp_path):
    html = page(tmp_path, [{"test": "bare", "observed": {"resource": True}}])
    assert headline(html) == "No scenario with a published outcome was run."
    assert "bare" in html


@pytest.mark.parametrize("text", ["{}", "[1]", "nonsense"])
def test_a_suite_that_cannot_be_read_is_refused_by_its_path(tmp_path, text):
    (tmp_path / "suite.json").write_text(text)
    with pytest.raises(ReportError, match=r"suite\.json cannot be read"):
        render(tmp_path)


def rated(**shares: tuple[int, int]) -> dict[str, Any]:
    found = {
        name: {"count": count, "of": of, "low": 0.01, "high": 0.2}
        for name, (count, of) in shares.items()
    }
    runs = [{"seed": 7, "run": "../rate/1", "counts": {}}, {"seed": 8, "run": "/x", "counts": {}}]
    rate = {"of": "violations", "published": "About 18 %.", "runs": runs, "shares": found}
    return entry("etcd", expected={}, observed={}, rate=rate, versions={"etcd": "etcd 3.4.23"})


def test_a_rate_is_shown_next_to_the_published_figure_with_its_interval_and_its_runs(tmp_path):
    html = page(tmp_path, [rated(updates=(9, 100), data=(0, 600), clients=(6, 600))])
    assert headline(html) == "One rate was counted, over 2 runs."
    assert "Lost were 9 of 100 acknowledged updates: 9 % (1 % to 20 %)." in html
    assert "in none of 600 holds (at most 5 per 1,000, rule of three)." in html
    assert "6 of 600 holds: 10 per 1,000 (10 to 200)." in html
    assert "About 18 %." in html and "<dd>etcd 3.4.23</dd>" in html
    assert re.findall(r'<a href="(.*?)"', html) == ["../rate/1/report.html"]


def test_lock_costs_are_shown_relative_to_the_first(tmp_path):
    locks = [
        {"lock": "redis", "ms": 0.5, "trips": 2, "rate": 6000.4},
        {"lock": "redlock", "ms": 2.5, "trips": 10},
    ]
    cost = {"locks": locks, "published": "100,000 a second."}
    html = page(tmp_path, [entry(), entry("costs", expected={}, cost=cost)])
    assert headline(html) == "The one scenario had the published outcome, in 1 run."
    cells = re.findall(r"<td[^>]*>(.*?)</td>", html.split("<h2>Costs</h2>")[1])
    assert cells == ["redis", "0.5", "1.0", "2", "6,000", "redlock", "2.5", "5.0", "10", ""]
    assert "Published: 100,000 a second." in html


def test_at_a_glance_each_run_has_a_sign_a_checker_which_leads_to_its_report(tmp_path):
    odd = entry(
        guard="fenced", observed={"lease_exclusion": False, "mutual_exclusion": False},
        as_expected=False,
    )  # fmt: skip
    html = page(tmp_path, [entry(), odd])
    grid = html.split("<h2>At a glance</h2>")[1].split("<h2>Scenarios</h2>")[0]
    said = re.findall(
        r'<a class="spot (.*?)" href="(.*?)" title="(.*?)" aria-label="\3">(.)</a>', grid
    )
    first = "../client-pause-none/20260102T030405Z/report.html"
    second = "../client-pause-fenced/20260102T030405Z/report.html"
    assert said == [
        ("holds", first, "guard none, lease_exclusion: holds, as predicted", "✓"),
        ("broken against", second, "guard fenced, lease_exclusion: broken, predicted: holds", "✗"),
        ("unknown", first, "guard none, liveness: unknown, no prediction", "?"),
        ("broken", first, "guard none, mutual_exclusion: broken, as predicted", "✗"),
        ("broken", second, "guard fenced, mutual_exclusion: broken, as predicted", "✗"),
    ]
    [place] = re.findall(r'<a class="to" href="#(.*?)">client-pause</a>', grid)
    assert f'id="{place}"' in html


def test_each_run_of_a_rate_has_its_count_where_one_thing_is_counted(tmp_path):
    row = rated(updates=(9, 100))
    row["rate"]["runs"][0]["counts"] = {"updates": [4, 1050]}
    row["rate"]["runs"][1]["counts"] = {"data": [5, 50], "clients": [6, 50]}
    html = page(tmp_path, [row])
    assert "seed 7</a> (4 of 1,050), seed 8</dd>" in html


def test_a_version_that_is_but_a_number_has_its_name(tmp_path):
    versions = {"redis-py": "8.1.0", "redis": "Redis 7.0.15"}
    assert "On redis-py 8.1.0, Redis 7.0.15<" in page(tmp_path, [entry(versions=versions)])


def test_a_suite_of_costs_alone_has_them_in_its_headline(tmp_path):
    locks = [{"lock": lock, "ms": 0.5, "trips": 2} for lock in ("redis", "etcd")]
    row = entry("costs", expected={}, cost={"locks": locks})
    said = "The costs of 2 locks were measured: each other is slower than redis."
    assert headline(page(tmp_path, [row])) == said
    html = page(tmp_path, [rated(updates=(9, 100)), row | {"as_expected": False}])
    assert headline(html) == (
        "One rate was counted, over 2 runs. "
        "The costs of 2 locks were measured: not all are slower than redis."
    )


def test_costs_without_versions_say_none(tmp_path):
    cost = {"locks": [{"lock": "redis", "ms": 0.5, "trips": 2}]}
    assert "On " not in page(tmp_path, [entry("costs", expected={}, cost=cost)])


@pytest.mark.parametrize("rate", [0.5, {"runs": [{"run": "x"}]}, {"runs": [{"counts": 1}]}])
def test_a_suite_with_a_damaged_rate_is_an_error_and_no_crash(tmp_path, rate):
    with pytest.raises(ReportError, match=r"are damaged|cannot be read"):
        page(tmp_path, [entry(rate=rate)])
