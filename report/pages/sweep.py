"""The page of a sweep: where safety ends, as a map of violations for each question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from fencepost.atomic_write import replace
from fencepost.report.pages import heatmap, leaders, page
from fencepost.report.words import cells
from fencepost.report.words.cells import figure

_QUESTIONS = {
    "service": (
        "The service granted a lease twice",
        "holds that were granted while another client's lease ran",
    ),
    "data": ("Data was damaged", "holds under which an update was lost, or a late write accepted"),
    "clients": (
        "Two clients believed",
        "holds that began while another client still counted on its hold",
    ),
}
_HEATS = (1.0, 10.0, 100.0)
"""Upper ends of the colour ranges, in violating holds per 1,000."""
_OVERLAPS_S = (0.1, 1.0, 10.0)
"""The same of the longest overlap of two leaders' work."""


def with_sums(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the cells, each with its runs summed up under `sum`."""
    return [{**row, "sum": cells.summed(row)} for row in rows]


def read(folder: Path) -> dict[str, Any]:
    """Read the sweep in this folder: its plan, versions, and cells with their sums.

    Raises:
        ReportError: the file is missing or malformed.
    """
    found = heatmap.read(folder, "sweep", with_sums)
    return {**found, "versions": found["versions"].get("", {})}


def render(folder: Path) -> Path:
    """Write report.html and sweep.csv into the folder of a sweep; return the page's path.

    Raises:
        ReportError: there is no sweep in it.
        OSError: a file cannot be written.
    """
    stored = read(folder)
    with page.usable(folder, "sweep"):
        replace(folder / "sweep.csv", [heatmap.csv_of(flat(stored)).encode()])
        shown = contents(folder.resolve().name, stored)
        return page.write(folder / "report.html", "sweep.html", shown)


def contents(name: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template's data."""
    plan, rows = stored["plan"], stored["cells"]
    sides = (plan["x"], plan["y"])
    asked = [one for one in _QUESTIONS if _seen(rows, one)]
    shown = [
        heatmap.cell(f"cell-{number}", title(sides, row), row) for number, row in enumerate(rows)
    ]
    return {
        "name": f"sweep, {name}",
        "title": f"{plan['lock']}, {sides[0]['title']} × {sides[1]['title']}",
        "headline": headline(stored),
        "plan": plan,
        "file": stored.get("file", ""),
        "maps": [
            *(_map(one, plan, rows, shown) for one in asked or ["service"]),
            *overlap_maps(plan, rows, shown),
        ],
        "unseen": [_unseen(one, rows) for one in _QUESTIONS if one not in asked],
        "cells": [one for one in shown if one["runs"]],
        "leaders": leaders.table((one, one["sum"]) for one in shown),
        "ran": sum(row["sum"]["runs"] for row in rows),
        "holds": sum(row["sum"]["holds"] for row in rows),
        "versions": heatmap.versions({"": stored.get("versions") or {}}),
    }


def title(sides: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> str:
    """Return the name of a cell."""
    return ", ".join(
        f"{side['title']} {shown}"
        for side, shown in zip(sides, (row["x_shown"], row["y_shown"]), strict=True)
    )


def headline(stored: Mapping[str, Any]) -> str:
    """Sum up the sweep in one sentence."""
    rows = stored["cells"]
    ran = [row for row in rows if row["sum"]["runs"]]
    if not ran:
        return "Nothing was run yet."
    parts = []
    for question, (words, _) in _QUESTIONS.items():
        if count := _seen(ran, question):
            parts.append(f"{words[0].lower()}{words[1:]} in {count}")
    if both := sum(1 for row in ran if leaders.longest(row["sum"]["leaders"])):
        parts.append(f"two leaders worked at once in {both}")
    of = f"{len(ran)} settings" if len(ran) > 1 else "1 setting"
    if not parts:
        return f"{stored['plan']['lock']}: no violation was seen in {of}."
    most = ", ".join(parts[:-1])
    return f"{stored['plan']['lock']}: of {of}, {f'{most} and ' if most else ''}{parts[-1]}."


def _seen(rows: Sequence[Mapping[str, Any]], question: str) -> int:
    """State in how many cells the question was violated."""
    return sum(1 for row in rows if row["sum"]["violations"][question]["count"])


def _unseen(question: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """State that a question was violated nowhere, with the upper bound that this supports."""
    holds = sum(row["sum"]["holds"] for row in rows)
    return f"{_QUESTIONS[question][0]}: not {cells.unseen(holds)}."


def _map(
    question: str, plan: Mapping[str, Any], rows: Sequence[Mapping[str, Any]],
    shown: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    """Return the map of a question: violating holds, and where they begin."""
    words, what = _QUESTIONS[question]
    return {
        "title": f"{words}, per 1,000 holds",
        "what": f"{what}, of all holds",
        "heats": _heats(_HEATS, "not seen; the figure is the upper bound (95 %)"),
        "rows": placed(
            plan, [_tile(question, *one) for one in zip(rows, shown, strict=True)], rows
        ),
        "frontier": frontier(question, plan, rows),
    }


def placed(
    plan: Mapping[str, Any], tiles: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows of a map: a tile for each cell, the highest value of y on top."""
    at = {(row["x"], row["y"]): tile for row, tile in zip(rows, tiles, strict=True)}
    sides = reversed(list(zip(plan["y"]["values"], plan["y"]["shown"], strict=True)))
    return [
        {"title": title, "tiles": [at[x, y] for x in plan["x"]["values"]]} for y, title in sides
    ]


def overlap_maps(
    plan: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], shown: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the map of an elector: the longest overlap of two leaders' work; none for a lock."""
    if not any(row["sum"]["leaders"] for row in rows):
        return []
    tiles = [_overlap(*one) for one in zip(rows, shown, strict=True)]
    return [
        {
            "title": "Two leaders worked at once, longest overlap in s",
            "what": "changes of leader after which two worked at once, of all changes",
            "heats": _heats(_OVERLAPS_S, "not seen"),
            "rows": placed(plan, tiles, rows),
            "frontier": [],
        }
    ]


def _overlap(row: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any]:
    led = row["sum"]["leaders"]
    if not led:
        return _untested(row, one)
    overlaps, longest_s = led["overlaps"], led["overlap_longest_s"]["longest"]
    tile = _bare(row, one) | {"counts": f"{overlaps['count']} of {overlaps['of']}"}
    if overlaps["count"]:
        return tile | {"heat": _heat(longest_s, _OVERLAPS_S), "figure": figure(longest_s)}
    judged = overlaps["of"] and "unknown" not in row["sum"]["marks"]
    return tile | (
        {"heat": "none", "figure": "0"} if judged else {"heat": "unknown", "figure": "?"}
    )


def _bare(row: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": one["id"], "title": one["title"], "words": one["words"], "reason": row["reason"]}


def _untested(row: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tile of a cell without a run that was judged."""
    crashed = row["sum"]["crashed"]
    why = "cannot be" if row["reason"] else "crashed" if crashed else "not run"
    heat = "unknown" if crashed else "untested"
    return _bare(row, one) | {"heat": heat, "figure": "–", "counts": why}


def _tile(question: str, row: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tile: its colour, figure and counts. An unproved cell has no figure."""
    total = row["sum"]
    found = total["violations"][question]
    if not total["runs"]:
        return _untested(row, one)
    tile, counts = _bare(row, one), f"{found['count']:,} of {total['holds']:,}"
    if not total["holds"]:
        return tile | {"heat": "unknown", "figure": "?", "counts": "no holds"}
    if "unknown" in total["marks"] and not found["count"]:
        return tile | {"heat": "unknown", "figure": "?", "counts": counts}
    if not found["count"]:
        return tile | {"heat": "none", "figure": f"< {figure(found['at_most'])}", "counts": counts}
    heat = _heat(found["per_1000"], _HEATS)
    return tile | {"heat": heat, "figure": figure(found["per_1000"]), "counts": counts}


def _heat(value: float, limits: Sequence[float]) -> str:
    return f"heat-{sum(1 for limit in limits if value >= limit)}"


def _heats(limits: Sequence[float], unseen: str) -> list[dict[str, str]]:
    """Return the key of the colours."""
    shown = [figure(limit) for limit in limits]
    words = [f"below {shown[0]}", *(f"{a} to {b}" for a, b in pairwise(shown)),
             f"{shown[-1]} and more"]  # fmt: skip
    return [
        {"heat": "none", "words": unseen},
        *({"heat": f"heat-{n}", "words": one} for n, one in enumerate(words)),
        {"heat": "unknown", "words": "? could not be judged, or the lock was never granted"},
    ]


def frontier(
    question: str, plan: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return, for each value of the setting, the highest fault value without a violation and the
    lowest with one. `above`: higher values without a violation; empty if the frontier is monotonic.
    There is none if both axes are settings.
    """
    if not (plan["x"]["fault"] or plan["y"]["fault"]):
        return []
    setting, fault = ("x", "y") if plan["y"]["fault"] else ("y", "x")
    found = []
    for value, shown in zip(plan[setting]["values"], plan[setting]["shown"], strict=True):
        line = sorted(
            (row for row in rows if row[setting] == value and row["sum"]["holds"]),
            key=lambda row: row[fault],
        )
        bad = [row for row in line if row["sum"]["violations"][question]["count"]]
        good = [row for row in line if row["sum"]["violations"][question]["count"] == 0]
        first = bad[0] if bad else None
        below = [row for row in good if first is None or row[fault] < first[fault]]
        above = [row for row in good if first is not None and row[fault] > first[fault]]
        rate = first["sum"]["violations"][question] if first else None
        found.append(
            {
                "setting": shown,
                "safe": below[-1][f"{fault}_shown"] if below else "",
                "safe_holds": sum(row["sum"]["holds"] for row in below),
                "first": first[f"{fault}_shown"] if first else "",
                "rate": cells.rate(rate) if rate else "",
                "above": [row[f"{fault}_shown"] for row in above],
            }
        )
    return found


def flat(stored: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row per cell with plain values, for a spreadsheet or a database."""
    x, y = stored["plan"]["x"]["axis"], stored["plan"]["y"]["axis"]
    return [
        {"lock": stored["plan"]["lock"], x: row["x"], y: row["y"], "reason": row["reason"]}
        | heatmap.figures(row["sum"])
        for row in stored["cells"]
    ]
