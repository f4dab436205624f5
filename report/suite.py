"""The report of a suite: each scenario's published outcome beside what was observed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fencepost.report import page
from fencepost.report.questions import ordered, question, verdict
from fencepost.report.stored import ReportError


def render(folder: Path) -> Path:
    """Write report.html beside the suite.json in `folder`; returns its path.

    Raises:
        ReportError: suite.json is missing or is no list of objects.
        OSError: report.html cannot be written.
    """
    path = folder / "suite.json"
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise ValueError("not a list of objects")
    except (OSError, ValueError) as error:
        raise ReportError(
            f"{path}: no report, because it cannot be read ({error}); name the folder of a suite"
        ) from error
    return page.write(folder / "report.html", "suite.html", contents(_name(folder), entries))


def _name(folder: Path) -> str:
    """The suite's name and time, as the store names them: results/<suite>/<UTC time>."""
    place = folder.resolve()
    return f"{place.parent.name}, {place.name}"


def contents(name: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything that the template shows."""
    scripted = [_row(entry) for entry in entries if entry.get("expected")]
    free = [_row(entry) for entry in entries if not entry.get("expected")]
    return {
        "name": name,
        "headline": headline(scripted),
        "as_published": all(row["as_expected"] for row in scripted) if scripted else None,
        "scenarios": _scenarios(scripted),
        "scripted_checkers": _columns(scripted),
        "free": free,
        "free_checkers": _columns(free),
        "about_checker": {
            name: question(name) for row in [*scripted, *free] for name in row["cells"]
        },
    }


def headline(scripted: list[dict[str, Any]]) -> str:
    """One sentence: did every scenario come out as its author published it?"""
    if not scripted:
        return "No scenario with a published outcome was run."
    names = list(dict.fromkeys(row["scenario"] for row in scripted))
    odd = list(dict.fromkeys(row["scenario"] for row in scripted if not row["as_expected"]))
    runs = f"{len(scripted)} run{'s' if len(scripted) > 1 else ''}"
    if not odd:
        all_of = f"All {len(names)} scenarios" if len(names) > 1 else "The one scenario"
        return f"{all_of} came out as published, in {runs}."
    return f"{len(odd)} of {len(names)} scenarios did not come out as published: {', '.join(odd)}."


def _row(entry: Mapping[str, Any]) -> dict[str, Any]:
    expected: Mapping[str, Any] = entry.get("expected") or {}
    observed: Mapping[str, Any] = entry.get("observed") or {}
    cells = {
        name: {
            "expected": verdict(expected[name]) if name in expected else None,
            "observed": verdict(observed[name]) if name in observed else None,
        }
        for name in dict.fromkeys([*expected, *observed])
    }
    return {
        "test": entry.get("test", ""),
        "scenario": str(entry.get("scenario") or entry.get("test") or "unnamed"),
        "guard": page.plain(entry.get("guard")),
        "claim": entry.get("claim") or "",
        "source": entry.get("source") or "",
        "what": entry.get("what") or "",
        "why": entry.get("why") or "",
        "link": _link(entry.get("run")),
        "as_expected": bool(entry.get("as_expected")),
        "cells": cells,
    }


def _scenarios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs of each scenario together, and once what they have in common."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["scenario"], []).append(row)
    return [
        {
            "name": name,
            "what": list(dict.fromkeys(row["what"] for row in runs if row["what"])),
            "sources": list(dict.fromkeys(row["source"] for row in runs if row["source"])),
            "runs": runs,
        }
        for name, runs in groups.items()
    ]


def _link(run: Any) -> str | None:
    """The run's own report, relative to the suite's; None for a path that leads elsewhere.

    An absolute path or an URL in suite.json would break as soon as the store is moved, or
    lead out of it.
    """
    if not run or ":" in str(run) or os.path.isabs(str(run)):
        return None
    return quote(f"{str(run).rstrip('/')}/report.html")


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    """The checkers that any row names, in the order of the design's table."""
    named = {name for row in rows for name in row["cells"]}
    known = ordered(named)
    return known + sorted(named - set(known))
