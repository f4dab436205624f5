"""The page of a matrix: every lock under every fault at a glance, and the findings in words."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fencepost.report import cells, page
from fencepost.report.cells import STATES, figure, unseen
from fencepost.report.findings import findings, headline
from fencepost.report.stored import ReportError
from fencepost.wholefile import replace

TITLES = {
    "none": "no fault",
    "pause:client": "client pause",
    "pause:server": "server pause",
    "kill": "crash",
    "power": "power loss",
    "disk": "disk full",
    "all": "all of these",
}
"""What the columns of the usual faults are called; others have the name that was given."""
_FIRST = 2
"""So many findings of a sort are shown at once."""


def with_sums(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The cells, each with what its runs come to under `sum`."""
    calm = {
        (row["lock"], row["guard"]): cells.summed(row) for row in rows if row["fault"] == "none"
    }
    return [
        {**row, "sum": cells.summed(row, calm.get((row["lock"], row["guard"])))} for row in rows
    ]


def read(folder: Path) -> dict[str, Any]:
    """The matrix.json of this folder, its cells with their sums.

    Raises:
        ReportError: it is missing or is none.
    """
    path = folder / "matrix.json"
    try:
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return {**stored, "cells": with_sums(stored["cells"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReportError(
            f"{path} cannot be read ({error}): name the folder of a matrix, such as "
            "results/matrix/latest"
        ) from error


def render(folder: Path) -> Path:
    """Write report.html and matrix.csv beside the matrix.json in `folder`; returns the page's path.

    Raises:
        ReportError: matrix.json is missing or is none.
        OSError: a file cannot be written.
    """
    stored = read(folder)
    replace(folder / "matrix.csv", [_csv(flat(stored["cells"])).encode()])
    shown = contents(folder.resolve().name, stored, stored["cells"])
    return page.write(folder / "report.html", "matrix.html", shown)


def contents(name: str, stored: Mapping[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything that the template shows."""
    plan = stored["plan"]
    shown = [_cell(number, row) for number, row in enumerate(rows)]
    by_place = {(one["lock"], one["guard"], one["fault"]): one for one in shown}
    found = findings(rows)
    return {
        "name": f"matrix, {name}",
        "headline": headline(rows),
        "states": _states(shown),
        "findings": [one for sort in found for one in sort[:_FIRST]],
        "more": [one for sort in found for one in sort[_FIRST:]],
        "columns": [{"name": fault, "title": title(fault)} for fault in plan["faults"]],
        "rows": [
            _row(lock, guard, [by_place[lock, guard, fault] for fault in plan["faults"]])
            for lock in plan["locks"]
            for guard in plan["guards"]
        ],
        "guards": len(plan["guards"]),
        "cells": [one for one in shown if one["runs"]],
        "plan": plan,
        "ttls": sorted({row["ttl_ms"] for row in rows if row["ttl_ms"]}),
        "ran": sum(row["sum"]["runs"] for row in rows),
        "holds": sum(row["sum"]["holds"] for row in rows),
        "versions": _versions(stored.get("versions") or {}),
    }


def title(fault: str) -> str:
    """What a column is called."""
    return TITLES.get(fault, fault)


def _states(shown: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The key: every state, with how many cells are in it."""
    states = [one["state"] for one in shown]
    return [
        {"name": name, "sign": one.sign, "word": one.word, "what": one.what,
         "count": states.count(name)}
        for name, one in STATES.items()
    ]  # fmt: skip


def _row(lock: str, guard: str, row: list[dict[str, Any]]) -> dict[str, Any]:
    """A row of the table; `why` in the place of cells that all cannot be, for one reason."""
    reasons = {one["reason"] for one in row if not one["runs"]}
    same = len(reasons) == 1 and not any(one["runs"] for one in row)
    return {"lock": lock, "guard": guard, "cells": row, "why": reasons.pop() if same else ""}


def _cell(number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    total = row["sum"]
    worst = next(
        (total["violations"][name] for name in cells.QUESTIONS
         if total["violations"][name]["count"] and _of(total["state"]) == name),
        None,
    )  # fmt: skip
    return {
        "id": f"cell-{number}",
        "lock": row["lock"],
        "guard": row["guard"],
        "fault": row["fault"],
        "title": f"{row['lock']}, {title(row['fault'])}, guard {row['guard']}",
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
        "checkers": total["checkers"],
        "nemesis": ", ".join(row["nemesis"]) or "none",
        "runs": [
            {"crashed": "", **run, "link": _link(run.get("run")), "number": place}
            for place, run in enumerate(row["runs"], 1)
        ],
    }  # fmt: skip


_QUESTIONS = {
    "service": "Did the lock service keep its promise?",
    "clients": "Did only one client believe at a time?",
    "data": "Did the data survive?",
}


def _of(state: str) -> str:
    """The question whose rate a cell of this state shows."""
    return {"broken": "service", "damaged": "data", "believed": "clients"}.get(state, "")


def _said(found: Mapping[str, Any], holds: int, runs: int) -> str:
    """A question's figures in words."""
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


def _link(run: Any) -> str | None:
    """The run's own report, relative to the page; None for a path that would lead elsewhere."""
    if not run or ":" in str(run) or str(run).startswith("/"):
        return None
    return quote(f"{str(run).rstrip('/')}/report.html")


def _versions(found: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """What was tested: each version with the locks that ran on it."""
    merged: dict[str, list[str]] = {}
    for versions in found.values():
        for what, version in versions.items():
            said = merged.setdefault(what, [])
            if version not in said:
                said.append(version)
    return merged


def flat(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row a cell with plain values, for a spreadsheet or a database."""
    return [_flat(row) for row in rows]


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    total = row["sum"]
    found = {name: row[name] for name in ("lock", "fault", "guard", "ttl_ms", "reason")}
    found |= {
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
    return found | {name: _plain(said["worst"]) for name, said in total["checkers"].items()}


def _plain(valid: Any) -> str | None:
    return None if valid is None else str(valid).lower()


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()
