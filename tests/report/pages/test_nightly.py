"""The page, the trend and the badge of a nightly run."""

from __future__ import annotations

import pytest

from fencepost.report.pages import nightly


def entry(state, **more):
    return {
        "key": "suite/a", "marks": ["broken"], "crashed": False, "expected": "",
        "said": "", "run": "", "state": state, "known": {},
    } | more  # fmt: skip


def made(*states, seed=7, figures=None, began="2026-01-02T03:04:05Z"):
    return {
        "seed": seed, "budget_s": 60.0, "began": began, "took_s": 30.0, "parts": [], "over": True,
        "entries": [entry(state) for state in states], "figures": figures or {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("states", "message", "colour"),
    [
        (["same", "changed", "unknown"], "1 changed", "red"),
        (["same", "crashed"], "1 crashed", "orange"),
        (["same", "unknown"], "1 as known, 1 unknown", "yellow"),
        (["same", "not run", "not seen this time"], "2 as known", "brightgreen"),
        (["same", "new"], "1 as known, 1 new", "green"),
        (["not run"], "nothing run", "lightgrey"),
        ([], "nothing run", "lightgrey"),
    ],
)
def test_a_badge_has_shields_format_and_is_green_if_only_known_outcomes_occur(
    states, message, colour
):
    assert nightly.badge(made(*states)) == {
        "schemaVersion": 1, "label": "locks by night", "message": message, "color": colour,
    }  # fmt: skip


def test_a_headline_never_hides_unknown_outcomes():
    said = nightly.headline(made("same", "unknown", "crashed"))
    assert said == "Nothing changed: 1 of 3 outcomes are as in the baseline; 1 crashed, 1 unknown."
    assert nightly.headline(made("changed", "same")) == "1 outcome of 2 changed."
    assert nightly.headline(made()) == "Nothing was run."


def test_a_nightly_run_without_a_figure_is_a_gap_in_its_line():
    found = nightly.chart({"a": [0.0, None, 2.0, 4.0]}, ["1", "2", "3", "4"])
    (line,) = found["lines"]
    assert len(line["dots"]) == 3 and len(line["pieces"]) == 1
    assert line["pieces"][0].count(",") == 2
    heights = [y for _, y, _ in line["dots"]]
    assert heights[0] == found["floor"] and heights[-1] == found["top"]


def test_a_trend_has_each_nightly_run_with_its_rates_and_their_intervals():
    rates = {"service": {"count": 2, "of": 1000}, "clients": {"count": 0, "of": 0}}
    figures = {"rates": rates, "acquire_p50_ms": {"redis": 1.5},
               "regrant_s": {"count": 1, "median": 0.5, "longest": 0.9}}  # fmt: skip
    found = nightly.trend([("", made("same")), ("a/report.html", made("same", figures=figures))])
    newest, oldest = found["nights"]
    assert newest["rates"][:2] == ["2 (0.24 to 7.2) of 1,000 holds", "none"]
    assert oldest["rates"] == ["none"] * 3
    assert list(found["acquires"]) == ["redis"]


def test_a_page_has_both_outcomes_and_links_to_runs_that_are_there(tmp_path):
    (tmp_path / "a" / "t").mkdir(parents=True)
    (tmp_path / "a" / "t" / "report.html").touch()
    folder = tmp_path / "nightly" / "n"
    folder.mkdir(parents=True)
    one = made()
    known = {"marks": ["kept"], "night": "before", "seed": 1, "run": "a/gone", "said": ""}
    one["entries"] = [entry("changed", run="a/t", said="<script>", known=known)]
    text = nightly.render(folder, one, tmp_path).read_text()
    assert text.count('href="../../a/t/report.html"') == 1 and "a/gone" not in text
    assert "<strong>kept</strong>" in text and "<strong>broken</strong>" in text
    assert "<script>" not in text.split("<main>")[1]


@pytest.mark.parametrize("state", ["changed", "crashed", "unknown"])
def test_a_name_does_not_act_as_markup_in_the_summary(state):
    hostile = "`![x](http://example.org/x.png)` @all <img src=x> a|b"
    one = made() | {"only": [hostile]}
    one["entries"] = [entry(state, key=hostile, said=hostile, marks=[hostile])]
    text = nightly.markdown(one)
    assert not {"`", "[", "]", "@"} & set(text)
    assert "://" not in text and "<img" not in text and "a\\|b" in text
