"""The page of a played catalogue: which way finds which defect of a lock, and how soon."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fencepost.report import campaign_files, defect_scores
from fencepost.report.defect_scores import Cell, Row
from fencepost.report.pages import page

_MARKS = {"found": "holds", "partly": "unknown", "missed": "broken", "cannot": "not-checked",
          "not played": "not-checked"}  # fmt: skip
_BY = {"history": "by history", "hunt": "by hunt", "servers": "on servers"}


def render(folder: Path) -> Path:
    """Write report.html into the folder of a play; return its path.

    Raises:
        ReportError: the folder holds no play of the catalogue.
        OSError: report.html cannot be written.
    """
    stored = campaign_files.read(folder, "defects")
    with page.usable(folder, "play"):
        values = _contents(defect_scores.of_rows(stored.rows), stored.plan)
        return page.write(folder / "report.html", "defects.html", values)


def _contents(rows: list[Row], plan: Mapping[str, Any]) -> dict[str, Any]:
    scores = defect_scores.scores(rows)
    wrong = any(cell.wrong for row in rows for cell in row.cells.values())
    return {
        "headline": headline(rows),
        "verdict": "broken" if wrong else "holds" if scores else "not-checked",
        "seed": plan.get("seed"),
        "seeds": _seeds(rows),
        "ways": [way for way in defect_scores.WAYS if any(way in row.cells for row in rows)],
        "scores": {way: one.words for way, one in scores.items()},
        "families": _families(rows),
    }


def _seeds(rows: list[Row]) -> str:
    """Return how many seeds each way was played with: '5 by history, 1 on servers'."""
    most = {
        way: max((row.cells[way].of for row in rows if way in row.cells), default=0)
        for way in defect_scores.WAYS
    }
    return ", ".join(f"{of} {_BY[way]}" for way, of in most.items() if of)


def headline(rows: list[Row]) -> str:
    """Return the result in a sentence."""
    found = defect_scores.scores(rows)
    words = [f"{way} {one.found} of {one.of}" for way, one in found.items() if one.of]
    return f"Lock defects found: {', '.join(words)}." if words else "No defect was played yet."


def _families(rows: list[Row]) -> list[dict[str, Any]]:
    families = dict.fromkeys(row.family for row in rows)
    return [
        {"title": family, "rows": [_row(row) for row in rows if row.family == family]}
        for family in families
    ]


def _row(row: Row) -> dict[str, Any]:
    cells = {way: _cell(cell) for way, cell in row.cells.items()}
    return {"name": row.defect, "what": row.what, "checker": row.checker, "cells": cells}


def _cell(cell: Cell) -> dict[str, Any]:
    mark = "broken" if cell.wrong else _MARKS[cell.state]
    return {"words": cell.words, "mark": mark, "wrong": cell.wrong, "link": _link(cell.run)}


def _link(run: str) -> str | None:
    """Return the path of a run's report relative to this page; None if it leads elsewhere."""
    if not run or ":" in run or os.path.isabs(run):
        return None
    return quote(f"{run.rstrip('/')}/report.html")
