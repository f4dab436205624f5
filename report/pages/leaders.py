"""The figures of electors as pages and terminals show them: of one cell, and as a table of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.checker.verdict import count
from fencepost.report.words import leaders

NONE = "–"
"""A take-over that no change of a cell had."""


def said(found: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Return the figures of an elector in words, each with its title; none for a lock."""
    if not found:
        return []
    rows = {
        "two leaders worked at once": leaders.how_often(found["overlaps"]),
        "longest overlap of a run": leaders.spread(found["overlap_longest_s"]),
        "overlap of a run in total": leaders.spread(found["overlap_total_s"]),
        "time without a leader": leaders.spread(found["without_leader_s"]),
    }
    rows |= {
        f"take-over, {cause}": leaders.spread(times)
        for cause, times in found["take_over_s"].items()
    }
    rows["changes without a cause"] = str(found["changes_without_cause"])
    rows["work begun after stopped"] = count(found["beats_after_stopped"], "beat")
    rows["error of the clocks"] = leaders.seconds(found["clock_error_s"])
    return [{"title": title, "words": words} for title, words in rows.items()]


def longest(found: Mapping[str, Any] | None) -> str:
    """Return the longest overlap of a cell; "" for a lock, or if no two leaders worked at once."""
    if not found or not found["overlaps"]["count"]:
        return ""
    return leaders.seconds(found["overlap_longest_s"]["longest"])


def without(found: Mapping[str, Any] | None) -> str:
    """Return the median of the time without a leader of a cell's runs; "" for a lock."""
    return leaders.seconds(found["without_leader_s"]["median"]) if found else ""


def table(rows: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> dict[str, Any]:
    """Return a row for each cell of an elector that has run, from its `id` and `title` and its sum.

    `causes`: those of any change of leader, each a column of take-overs.
    """
    found = [(one, total["leaders"]) for one, total in rows if total["leaders"]]
    causes = leaders.causes(sums for _, sums in found)
    return {"causes": causes, "rows": [_row(one, sums, causes) for one, sums in found]}


def _row(one: Mapping[str, Any], sums: Mapping[str, Any], causes: Iterable[str]) -> dict[str, Any]:
    took = [sums["take_over_s"].get(cause) for cause in causes]
    return {
        "id": one["id"],
        "title": one["title"],
        "overlaps": leaders.how_often(sums["overlaps"]),
        "longest": leaders.seconds(sums["overlap_longest_s"]["longest"]),
        "total": leaders.spread(sums["overlap_total_s"]),
        "without": leaders.spread(sums["without_leader_s"]),
        "took": [leaders.spread(times) if times else NONE for times in took],
    }
