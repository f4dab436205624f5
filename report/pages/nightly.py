"""The page of a nightly run, and the trend over nightly runs.

Both use night.json only, so that nightly runs from elsewhere can be drawn.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost.checker.verdict import count
from fencepost.commandline import command, option
from fencepost.report.pages import page
from fencepost.report.words.cells import figure
from fencepost.report.words.inert import inert
from fencepost.report.words.intervals import share
from fencepost.times import describe

STATES = {
    "changed": ("≠", "the outcome differs from the baseline"),
    "crashed": ("!", "the run crashed and gives no result"),
    "unknown": ("?", "it could not be judged, and never counts as unchanged"),
    "not run": ("–", "it did not fit into the budget"),
    "new": ("+", "the baseline has no outcome for it yet"),
    "not seen this time": ("○", "an outcome that depends on chance was not seen"),
    "same": ("=", "the outcome equals the baseline's"),
}
QUESTIONS = {
    "service": "a lease granted twice",
    "clients": "two clients believed",
    "data": "data damaged",
}


_NOTHING: Mapping[str, Any] = {"marks": [], "night": "", "seed": None, "run": "", "said": ""}


def headline(night: Mapping[str, Any]) -> str:
    """Sum up a nightly run in a sentence."""
    counts = counted(night)
    total = len(night["entries"])
    if not total:
        return "Nothing was run."
    words = f"{count(counts['changed'], 'outcome')} of {total} changed"
    if not counts["changed"]:
        outcomes = count(total, "outcome")
        words = f"Nothing changed: {counts['same']} of {outcomes} are as in the baseline"
    more = {name: many for name, many in counts.items() if name not in ("changed", "same")}
    others = ", ".join(f"{many} {name}" for name, many in more.items() if many)
    return f"{words}{'; ' if others else ''}{others}."


def counted(night: Mapping[str, Any]) -> dict[str, int]:
    """Count the entries in each state."""
    return {name: sum(one["state"] == name for one in night["entries"]) for name in STATES}


def render(folder: Path, night: Mapping[str, Any], root: Path) -> Path:
    """Write report.html next to night.json; return its path. `root`: the results folder."""
    where = os.path.relpath(root.resolve(), folder.resolve())
    return page.write(folder / "report.html", "night.html", contents(night, where, root))


def contents(night: Mapping[str, Any], where: str, root: Path | None = None) -> dict[str, Any]:
    """Return the template's data. Links to runs begin with `where`; with `root`, only existing runs
    are linked."""

    def link(run: str) -> str:
        if not run or run.startswith("/"):
            return ""
        there = root is None or (root / run / "report.html").is_file()
        return f"{where}/{run}/report.html" if there else ""

    rows = [
        one | {"outcome": _outcome(one), "link": link(one["run"]),
               "known": {**_NOTHING, **(one["known"] or {})},
               "before": link((one["known"] or {}).get("run", ""))}
        for one in night["entries"]
    ]  # fmt: skip
    return {
        "night": night,
        "name": night["began"],
        "headline": headline(night),
        "states": [(name, *about, counted(night)[name]) for name, about in STATES.items()],
        "groups": [
            (name, STATES[name][1], [one for one in rows if one["state"] == name])
            for name in STATES if name != "changed"
        ],
        "changed": [one for one in rows if one["state"] == "changed"],
        "valid": False if counted(night)["changed"] else
        "unknown" if counted(night)["crashed"] else True,
        "describe": describe,
        "again": again(night),
    }  # fmt: skip


def _outcome(one: Mapping[str, Any]) -> str:
    return "; ".join(one["marks"]) or ("crashed" if one["crashed"] else "not run")


_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BELOW = 520, 150, 46, 12, 10, 22


def chart(series: Mapping[str, Sequence[float | None]], names: Sequence[str]) -> dict[str, Any]:
    """Return lines over nightly runs as coordinates for an SVG of 520 by 150: each with its name,
    points and dots. A run without a figure is a gap."""
    values = [value for line in series.values() for value in line if value is not None]
    most = max(values, default=0.0) or 1.0
    step = (_WIDE - _LEFT - _RIGHT) / max(len(names) - 1, 1)

    def at(number: int, value: float) -> tuple[float, float]:
        x = _LEFT + number * step if len(names) > 1 else _LEFT + (_WIDE - _LEFT - _RIGHT) / 2
        return round(x, 1), round(_TOP + (_HIGH - _TOP - _BELOW) * (1 - value / most), 1)

    lines = []
    for number, (name, line) in enumerate(series.items()):
        pieces: list[list[tuple[float, float]]] = [[]]
        dots = []
        for place, value in enumerate(line):
            if value is None:
                pieces.append([])
                continue
            point = at(place, value)
            pieces[-1].append(point)
            dots.append((*point, f"{name}, {names[place]}: {figure(value)}"))
        drawn = [" ".join(f"{x},{y}" for x, y in piece) for piece in pieces if len(piece) > 1]
        last = next((value for value in reversed(line) if value is not None), None)
        colour = list(STATES).index(name) if name in STATES else number
        lines.append({"name": name, "colour": colour % 8, "pieces": drawn, "dots": dots,
                      "last": "none" if last is None else figure(last)})  # fmt: skip
    return {
        "lines": lines, "has": bool(values), "most": figure(most), "wide": _WIDE, "high": _HIGH,
        "left": _LEFT, "right": _WIDE - _RIGHT, "top": _TOP, "floor": _HIGH - _BELOW,
        "first": names[0] if names else "", "final": names[-1] if names else "",
    }  # fmt: skip


def trend(nights: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the data of the trend page: nightly runs with their links ('' for none), the oldest
    first."""
    rows = [night for _, night in nights]
    names = [night["began"][:16].replace("T", " ") for night in rows]
    locks = sorted({lock for night in rows for lock in _figures(night, "acquire_p50_ms")})
    charts = [
        ("Outcomes", "Entries by state",
         chart({name: [float(counted(night)[name]) for night in rows] for name in STATES
                if any(counted(night)[name] for night in rows)}, names)),
        ("Violations per 1,000 holds", "of the matrix' cells, all locks and faults together",
         chart({words: [_rate(night, name) for night in rows]
                for name, words in QUESTIONS.items()}, names)),
        ("Time to a grant after a death, s", "from a holder's death to the next grant, of all runs",
         chart({name: [_figures(night, "regrant_s").get(name) for night in rows]
                for name in ("median", "longest")}, names)),
        ("Duration of the suites, min", "actual duration; cut off at the budget",
         chart({"suites": [_suites_min(night) for night in rows]}, names)),
    ]  # fmt: skip
    acquires = {
        lock: [_figures(night, "acquire_p50_ms").get(lock) for night in rows] for lock in locks
    }
    return {
        "charts": charts,
        # Too many lines for one chart: each lock has its own.
        "acquires": {lock: chart({lock: line}, names) for lock, line in acquires.items()},
        "nights": [
            {"name": name, "link": link, "seed": night["seed"], "headline": headline(night),
             "took": night["took_s"] / 60,
             "rates": [_rated(night, question) for question in QUESTIONS]}
            for name, (link, night) in zip(names, nights, strict=True)
        ][::-1],
        "questions": list(QUESTIONS.values()),
    }  # fmt: skip


def _figures(night: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (night.get("figures") or {}).get(name) or {}
    return found


def _rate(night: Mapping[str, Any], question: str) -> float | None:
    found = _figures(night, "rates").get(question) or {}
    return 1000 * found["count"] / found["of"] if found.get("of") else None


def _rated(night: Mapping[str, Any], question: str) -> str:
    found = _figures(night, "rates").get(question) or {}
    if not found.get("of"):
        return "none"
    low, high = share(found["count"], found["of"])
    per = figure(1000 * found["count"] / found["of"])
    return f"{per} ({figure(1000 * low)} to {figure(1000 * high)}) of {found['of']:,} holds"


def _suites_min(night: Mapping[str, Any]) -> float | None:
    took = sum(part["took_s"] for part in night["parts"] if part["name"] == "suites")
    return took / 60 if took else None


def markdown(night: Mapping[str, Any]) -> str:
    """Describe a nightly run in Markdown for a job's summary or an issue: what changed, both
    outcomes side by side."""
    lines = [
        f"### {headline(night)}",
        "",
        f"Seed {night['seed']}: <code>{inert(again(night))}</code>",
        "",
    ]
    changed = [one for one in night["entries"] if one["state"] == "changed"]
    if changed:
        lines += ["| what | baseline | now | why |", "| --- | --- | --- | --- |"]
        for one in changed:
            cells = (known(one), _outcome(one), str(one["said"]))
            lines.append(" | ".join([f"| {_cell(one['key'])}", *map(_cell, cells)]) + " |")
        lines.append("")
    for name in ("crashed", "unknown"):
        keys = [_cell(one["key"]) for one in night["entries"] if one["state"] == name]
        if keys:
            lines += [f"- {name}: {', '.join(keys[:20])}{' and more' if len(keys) > 20 else ''}"]
    return "\n".join([*lines, ""])


def known(one: Mapping[str, Any]) -> str:
    """Describe an entry's outcome in the baseline, or as it was published."""
    marks = (one["known"] or {}).get("marks")
    if marks:
        return "; ".join(marks)
    return f"published: {one['expected']}" if one["expected"] else "nothing"


def again(night: Mapping[str, Any]) -> str:
    """Return the command that repeats a nightly run."""
    budget, seed = f"{night['budget_s']:g}s", option("seed", night["seed"])
    only = option("only", ",".join(night.get("only") or ()))
    return command("nightly run", option("budget", budget), seed, only, *night.get("options", ()))


def _cell(text: str) -> str:
    return inert(" ".join(text.split())[:300])


def badge(night: Mapping[str, Any]) -> dict[str, Any]:
    """Return the badge of a nightly run in shields' endpoint format (schemaVersion 1)."""
    counts = counted(night)
    if counts["changed"]:
        return _badge(f"{counts['changed']} changed", "red")
    if counts["crashed"]:
        return _badge(f"{counts['crashed']} crashed", "orange")
    known = f"{counts['same'] + counts['not seen this time']} as known"
    if counts["unknown"]:
        return _badge(f"{known}, {counts['unknown']} unknown", "yellow")
    if counts["new"]:
        return _badge(f"{known}, {counts['new']} new", "green")
    played = counts["same"] + counts["not seen this time"]
    return _badge(known, "brightgreen") if played else _badge("nothing run", "lightgrey")


def _badge(message: str, colour: str) -> dict[str, Any]:
    return {"schemaVersion": 1, "label": "locks by night", "message": message, "color": colour}
