"""Cells as pages and tables show them, for both matrix and sweep."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost.report import campaign_files
from fencepost.report.pages import leaders as led
from fencepost.report.pages import page
from fencepost.report.words import cells, leaders
from fencepost.report.words.cells import STATES, figure, unseen

_QUESTIONS = {
    "service": "Did the lock service keep its promise?",
    "clients": "Did only one client believe at a time?",
    "data": "Did the data survive?",
}


WithSums = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def read(folder: Path, what: str, with_sums: WithSums) -> dict[str, Any]:
    """Read the plan of a matrix or a sweep (`what`), its versions, its cells with their sums, and
    the name of its file.

    Raises:
        ReportError: the file is missing or malformed.
    """
    stored = campaign_files.read(folder, what)
    with page.usable(folder, what):
        cells = with_sums(stored.rows)
    file = stored.older or campaign_files.LINES
    return {"plan": stored.plan, "versions": stored.versions, "cells": cells, "file": file}


def cell(id: str, title: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the page's data for a cell, whose runs are summed up in `row["sum"]`."""
    total = row["sum"]
    worst = next(
        (total["violations"][name] for name in cells.QUESTIONS
         if total["violations"][name]["count"] and _of(total["state"]) == name),
        None,
    )  # fmt: skip
    return {
        "id": id,
        "title": title,
        "state": total["state"],
        "word": STATES[total["state"]].word,
        "signs": [STATES[mark].sign for mark in total["marks"]],
        "also": [STATES[mark].word for mark in total["marks"][1:]],
        "figure": figure(worst["per_1000"]) if worst else "",
        "available": total["availability"],
        "words": total["words"],
        "reason": row["reason"],
        "sum": total,
        "questions": [
            {"title": _QUESTIONS[name], "valid": total["questions"][name],
             "words": _said(total["violations"][name], total["holds"], total["runs"])}
            for name in cells.QUESTIONS
        ],
        "leaders": led.said(total["leaders"]),
        "overlap": led.longest(total["leaders"]),
        "without": led.without(total["leaders"]),
        "checkers": total["checkers"],
        "nemesis": ", ".join(row["nemesis"]) or "none",
        "runs": [
            {"crashed": "", **run, "link": page.report_of(run.get("run")), "number": place}
            for place, run in enumerate(row["runs"], 1)
        ],
    }  # fmt: skip


def _of(state: str) -> str:
    """Return the question whose rate a cell of this state shows."""
    return {"broken": "service", "damaged": "data", "believed": "clients"}.get(state, "")


def _said(found: Mapping[str, Any], holds: int, runs: int) -> str:
    """Describe a question's figures."""
    if not holds:
        return "nothing was tested"
    if not found["count"]:
        return f"not {unseen(holds)}"
    when = ""
    if found["first_s"] is not None:
        when = f"; first after {found['first_s']:.1f} s (median)"
        if found["first_high_s"] is not None and found["first_low_s"]:
            when = f"{when[:-1]}, {found['first_low_s']:.1f} to {found['first_high_s']:.1f} s)"
    return f"{cells.rate(found)}; in {found['runs']} of {runs} runs{when}"


def states(shown: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the key: every state, with the number of cells in it."""
    found = [one["state"] for one in shown]
    return [
        {"name": name, "sign": one.sign, "word": one.word, "what": one.what,
         "count": found.count(name)}
        for name, one in STATES.items()
    ]  # fmt: skip


def versions(found: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """Return the versions that were tested, each with the locks that ran on it."""
    merged: dict[str, dict[str, None]] = {}
    for versions in found.values():
        for what, version in versions.items():
            merged.setdefault(what, {})[version] = None
    return {what: list(all_of) for what, all_of in merged.items()}


def figures(total: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell's sum as plain values, for a row of a table."""
    found = {
        name: total[name]
        for name in (
            "state", "runs", "crashed", "holds", "holds_a_second", "availability", "longest_s",
            "longest_calm_s",
        )
    }  # fmt: skip
    for question in cells.QUESTIONS:
        found[question] = _plain(total["questions"][question])
        for name, value in total["violations"][question].items():
            found[f"{question}_{name}"] = value
    found |= leaders.plain(total["leaders"])
    return found | {name: _plain(row["worst"]) for name, row in total["checkers"].items()}


def _plain(valid: Any) -> str | None:
    return None if valid is None else str(valid).lower()


def csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV, with a column for each name. Text that a spreadsheet takes for a formula
    begins with an apostrophe."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _text(value) for name, value in row.items()} for row in rows)
    return file.getvalue()


def _text(value: Any) -> Any:
    formula = isinstance(value, str) and value[:1] in ("=", "+", "-", "@")
    return f"'{value}" if formula else value
