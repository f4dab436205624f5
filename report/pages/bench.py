"""The page of a bench: the cost of each lock, as a table and bars, relative to one Redis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fencepost.report import campaign_files
from fencepost.report.pages import page

COLUMNS = (
    ("alone", "acquire_p50", "Acquire, alone, p50 (ms)"),
    ("alone", "acquire_p99", "p99 (ms)"),
    ("alone", "release_p50", "Release, alone, p50 (ms)"),
    ("alone", "rate", "Pairs/s, alone"),
    ("contended", "acquire_p50", "Acquire, 10 on one lock, p50 (ms)"),
    ("contended", "acquire_p99", "p99 (ms)"),
    ("contended", "rate", "Pairs/s, 10 on one lock"),
    ("apart", "rate", "Pairs/s, 10 locks"),
)


def read(folder: Path) -> dict[str, Any]:
    """Read the costs in this folder: `baseline`, `command`, `versions`, and of each of `locks` its
    `phases` and `trips`.

    Raises:
        ReportError: there are none.
    """
    stored = campaign_files.read(folder, "bench")
    with page.usable(folder, "bench"):
        return _merged(stored)


def _merged(stored: campaign_files.Stored) -> dict[str, Any]:
    locks = [one for one in stored.flat if not one.get("crashed")]
    versions = [stored.plan.get("versions") or {}, *stored.versions.values()]
    merged = {name: said for one in versions for name, said in one.items()}
    return {"baseline": "redis", "command": "", **stored.plan, "versions": merged, "locks": locks}


def render(folder: Path) -> Path:
    """Write report.html into the folder of a bench; return its path.

    Raises:
        ReportError: it is not the output of a bench.
        OSError: report.html cannot be written.
    """
    stored = read(folder)
    with page.usable(folder, "bench"):
        return page.write(folder / "report.html", "bench.html", _contents(stored))


def _contents(stored: dict[str, Any]) -> dict[str, Any]:
    rows = relative(stored["locks"], stored["baseline"])
    return {
        "baseline": stored["baseline"],
        "command": stored["command"],
        "versions": stored["versions"],
        "columns": [title for _, _, title in COLUMNS],
        "rows": rows,
        "latency": _bars(rows, "alone", "pair_p50", "ms", cheap=True),
        "rate": _bars(rows, "apart", "rate", "pairs/s", cheap=False),
    }


def relative(locks: list[dict[str, Any]], baseline: str) -> list[dict[str, Any]]:
    """Every lock's figures, each with its ratio to the baseline's, None where there is none."""
    base: dict[str, Any] = next((row for row in locks if row["lock"] == baseline), {"phases": {}})
    return [
        {
            "lock": row["lock"],
            "trips": row["trips"],
            "phases": row["phases"],
            "cells": [_cell(row, base, phase, name) for phase, name, _ in COLUMNS],
        }
        for row in locks
    ]


def _cell(
    row: dict[str, Any], base: dict[str, Any], phase: str, name: str
) -> tuple[float | None, float | None]:
    value, other = row["phases"][phase].get(name), (base["phases"].get(phase) or {}).get(name)
    return value, value / other if value is not None and other else None


def _bars(
    rows: list[dict[str, Any]], phase: str, name: str, unit: str, cheap: bool
) -> list[dict[str, Any]]:
    """Return a bar per lock, the best first: its length in per cent of the longest, and its
    figure."""
    found = [(row["lock"], row["phases"][phase].get(name)) for row in rows]
    found.sort(key=lambda one: one[1] or 0, reverse=not cheap)
    longest = max((value or 0 for _, value in found), default=0) or 1
    return [
        {
            "lock": lock,
            "share": 100 * (value or 0) / longest,
            "figure": "none" if value is None else f"{_number(value)} {unit}",
        }
        for lock, value in found
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
