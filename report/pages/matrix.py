"""The page of a matrix: every lock under every fault at a glance, and the findings in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost.atomic_write import replace
from fencepost.report.pages import heatmap, leaders, page
from fencepost.report.words import cells
from fencepost.report.words.findings import findings, headline

_TITLES = {"none": "no fault", "all": "all of these"}
_FIRST = 2
"""Number of findings of a sort that are shown at once."""


def with_sums(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the cells, each with its runs summed up under `sum`."""
    calm = {
        (row["lock"], row["guard"]): cells.summed(row) for row in rows if row["fault"] == "none"
    }
    return [
        {**row, "sum": cells.summed(row, calm.get((row["lock"], row["guard"])))} for row in rows
    ]


def read(folder: Path) -> dict[str, Any]:
    """Read the matrix in this folder: its plan, versions by lock, and cells with their sums.

    Raises:
        ReportError: the file is missing or malformed.
    """
    return heatmap.read(folder, "matrix", with_sums)


def render(folder: Path) -> Path:
    """Write report.html and matrix.csv into the folder of a matrix; return the page's path.

    Raises:
        ReportError: there is no matrix in it.
        OSError: a file cannot be written.
    """
    stored = read(folder)
    with page.usable(folder, "matrix"):
        replace(folder / "matrix.csv", [heatmap.csv_of(flat(stored["cells"])).encode()])
        shown = contents(folder.resolve().name, stored, stored["cells"])
        return page.write(folder / "report.html", "matrix.html", shown)


def contents(name: str, stored: Mapping[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the template's data."""
    plan = stored["plan"]
    columns = plan.get("columns", {})
    shown = [
        {"lock": row["lock"], "guard": row["guard"], "fault": row["fault"]}
        | heatmap.cell(f"cell-{number}", _title(row, columns), row)
        for number, row in enumerate(rows)
    ]
    by_place = {(one["lock"], one["guard"], one["fault"]): one for one in shown}
    found = findings(rows, columns)
    return {
        "name": f"matrix, {name}",
        "headline": headline(rows),
        "states": heatmap.states(shown),
        "findings": [one for sort in found for one in sort[:_FIRST]],
        "more": [one for sort in found for one in sort[_FIRST:]],
        "columns": [{"name": fault, "title": title(fault, columns)} for fault in plan["faults"]],
        "rows": [
            _row(lock, guard, [by_place[lock, guard, fault] for fault in plan["faults"]])
            for lock in plan["locks"]
            for guard in plan["guards"]
        ],
        "guards": len(plan["guards"]),
        "cells": [one for one in shown if one["runs"]],
        "leaders": leaders.table((one, one["sum"]) for one in shown),
        "plan": plan,
        "file": stored.get("file", ""),
        "ttls": sorted({row["ttl_ms"] for row in rows if row["ttl_ms"]}),
        "ran": sum(row["sum"]["runs"] for row in rows),
        "holds": sum(row["sum"]["holds"] for row in rows),
        "versions": heatmap.versions(stored.get("versions") or {}),
    }


def title(fault: str, columns: Mapping[str, Mapping[str, str]]) -> str:
    """Return a column's title: its family's, as the plan has it, or the name of the fault."""
    return columns.get(fault, {}).get("title") or _TITLES.get(fault, fault)


def _title(row: Mapping[str, Any], columns: Mapping[str, Mapping[str, str]]) -> str:
    return f"{row['lock']}, {title(row['fault'], columns)}, guard {row['guard']}"


def _row(lock: str, guard: str, row: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a row of the table; `why` replaces its cells if none is applicable, for one reason."""
    reasons = {one["reason"] for one in row if not one["runs"]}
    same = len(reasons) == 1 and not any(one["runs"] for one in row)
    return {"lock": lock, "guard": guard, "cells": row, "why": reasons.pop() if same else ""}


def flat(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per cell with plain values, for a spreadsheet or a database."""
    return [_flat(row) for row in rows]


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: row[name] for name in ("lock", "fault", "guard", "ttl_ms", "reason")}
    return named | heatmap.figures(row["sum"])
