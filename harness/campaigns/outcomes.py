"""Outcomes of a nightly run's stages: an entry for each scenario, rate, cell, hunt and defect.

An entry's outcome is a set of marks: `as published`; `broken`, `data damaged` of a cell; `seen` of
a defect. If its schedule is fixed (`sure`), the next nightly run must have the same marks. If it is
random, a new mark is a change, and a missing one is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from fencepost.checker.history.history import HistoryError, read
from fencepost.harness.errors import BadArguments
from fencepost.harness.results import results
from fencepost.report import defect_scores, known_defects
from fencepost.report.figures.measures import QUANTILES, quantiles
from fencepost.report.pages import matrix, suite
from fencepost.report.pages.suite import shares
from fencepost.report.words.cells import STATES
from fencepost.report.words.questions import verdict

UNKNOWN = "unknown"
CALM = frozenset(("kept", "nothing broken", "nothing found", "measured"))
"""Marks of entries without any violation."""


class Share(msgspec.Struct):
    """`count` violating holds `of` all holds that were judged."""

    count: int
    of: int

    def __post_init__(self) -> None:
        if not 0 <= self.count <= self.of <= 2**63:
            raise ValueError("its count is no share of its holds")


class Figures(msgspec.Struct):
    """The figures of a nightly run for the trend. `rates`: violating holds by question;
    `acquire_p50_ms`: the median latency of each lock without faults; `regrant_s`: the `count`,
    `median` and `longest` of the times from a holder's death to the next grant."""

    rates: dict[str, Share] = {}
    acquire_p50_ms: dict[str, float] = {}
    regrant_s: dict[str, float | None] = {}


class Entry(msgspec.Struct):
    """One entry of night.json. `run`: its run's folder, relative to the results folder.

    `expected`: the published outcome, in words. `rates`: violating holds by question. `acquire_ms`:
    QUANTILES of granted acquires by per cent. `regrant_s`: how long the lock took to be granted
    again after each death of a holder. `state` and `known` come from the comparison with a
    baseline.
    """

    key: str
    lock: str = ""
    sure: bool = False
    marks: list[str] = []
    crashed: bool = False
    expected: str = ""
    said: str = ""
    run: str = ""
    holds: int | None = None
    rates: dict[str, Any] = {}
    acquire_ms: dict[str, float] = {}
    regrant_s: list[float] = []
    duration_s: float | None = None
    state: str = ""
    known: dict[str, Any] = {}

    @property
    def outcome(self) -> str:
        """The marks as text."""
        return "; ".join(self.marks) or ("crashed" if self.crashed else "not run")


def of_suite(folder: Path) -> list[Entry]:
    """Return the entries of a suite's folder."""
    return [_suite(row, folder) for row in suite.read(folder)]


def _suite(row: Mapping[str, Any], folder: Path) -> Entry:
    made = Entry(f"suite/{row['test']}", str(row.get("lock", "")), said=str(row.get("why", "")))
    made.run = _named(folder / row["run"])
    if made.said.startswith("run: "):
        made.crashed = True
    elif made.said.startswith("faults: "):
        made.marks = [UNKNOWN]
    elif "rate" in row:
        found = row["rate"]["shares"]
        made.rates = {name: dict(one) for name, one in found.items()}
        made.holds = max(
            (one["of"] for name, one in found.items() if name != "updates"), default=None
        )
        seen = [f"{name} violated" for name, one in found.items() if one["count"]]
        made.marks = [UNKNOWN] if made.said else seen or ["measured"]
        made.said = made.said or " ".join(shares(row["rate"]))
    elif "cost" in row:
        made.marks = ["measured" if row["as_expected"] else "NOT as published"]
    else:
        _judged(made, row)
    return _measured(made, folder / row["run"])


def _judged(made: Entry, row: Mapping[str, Any]) -> None:
    """Set the marks of a scenario, or of a run without expectation."""
    expected = {name: verdict(valid) for name, valid in row["expected"].items()}
    observed = {name: verdict(valid) for name, valid in row["observed"].items()}
    made.sure = bool(expected)
    if not expected:
        made.marks = sorted(f"{name} broken" for name, valid in observed.items() if valid is False)
        made.marks += [UNKNOWN] * (UNKNOWN in observed.values())
        made.marks = made.marks or ["nothing broken"]
        return
    made.expected = ", ".join(f"{name} {_WORDS[valid]}" for name, valid in expected.items())
    odd = {name: observed.get(name) for name in expected if observed.get(name) != expected[name]}
    if row["as_expected"]:
        made.marks = ["as published"]
    elif not suite.carried_out(row) or (odd and all(valid == UNKNOWN for valid in odd.values())):
        made.marks = [UNKNOWN]
    else:
        made.marks = ["NOT as published"]
        made.marks += sorted(
            f"{name} {_WORDS[valid]}" for name, valid in odd.items() if valid is not None
        )


_WORDS = {True: "holds", False: "broken", UNKNOWN: UNKNOWN}


def of_matrix(folder: Path) -> list[Entry]:
    """Return the entries of a matrix' folder, without inapplicable cells."""
    found = []
    for row in matrix.read(folder)["cells"]:
        if row["reason"]:
            continue
        total = row["sum"]
        made = Entry(f"matrix/{row['lock']}/{row['fault']}/{row['guard']}", str(row["lock"]))
        runs = [one for one in row["runs"] if not one.get("crashed")]
        made.crashed = bool(row["runs"]) and not runs
        made.marks = [STATES[mark].word for mark in total["marks"]] if runs else []
        made.said, made.holds = total["words"], total["holds"]
        made.rates = {
            name: {"count": one["count"], "of": total["holds"], "per_1000": one["per_1000"],
                   "low": one["low"], "high": one["high"]}
            for name, one in total["violations"].items() if total["holds"]
        }  # fmt: skip
        places = [folder / one["run"] for one in runs]
        if places:
            worst = next(
                (p for p, one in zip(places, runs, strict=True) if not one["valid"]), places[-1]
            )
            made.run = _named(worst)
        found.append(_measured(made, *places))
    return found


def of_record(folder: Path) -> list[Entry]:
    """Return the entries of a track record's folder."""
    found = []
    for row in known_defects.read(folder):
        outcome = str(row["outcome"])
        made = Entry(f"track-record/{row['key']}", sure=True, said=str(row.get("said", "")))
        made.crashed, made.expected = outcome == "not played", "seen"
        made.marks = [] if made.crashed else [outcome]
        if row.get("run"):
            # Relative to this folder or to the working folder; TEST/TIME are the same.
            run = results.root().joinpath(*Path(row["run"]).parts[-2:])
            made.run = _named(run)
            _measured(made, run)
        found.append(made)
    return found


def of_defects(folder: Path) -> list[Entry]:
    """Return the entries of a play of the catalogue: one for each defect and way."""
    found = []
    for row in defect_scores.table(folder):
        for way, cell in row.cells.items():
            made = Entry(f"defects/{row.defect}/{way}", said=cell.words, expected="found")
            made.crashed = cell.state == "not played" and cell.words != "not played"
            made.marks = [] if cell.state == "not played" else [cell.state]
            made.marks += [f"untrue: {name}" for name in cell.untrue]
            made.marks += [f"twin accused: {name}" for name in cell.accused]
            if cell.run:
                made.run = _named(folder / cell.run)
            found.append(made)
    return found


def of_hunt(lock: str, code: int, folder: Path | None) -> Entry:
    """Return the entry of a hunt with this exit code; `folder` is its counterexample's, if it found
    one."""
    made = Entry(f"hunt/{lock}", lock)
    if code == 0:
        made.marks = ["nothing found"]
    elif code == 1 and folder is not None:
        checkers = results.read(folder)["checkers"]
        made.marks = sorted(
            f"{name} broken" for name, one in checkers.items() if one["valid"] is False
        )
        made.run = _named(folder)
    else:
        made.crashed, made.said = True, f"the hunt ended with exit code {code}"
    return made


def _named(folder: Path) -> str:
    place, root = folder.resolve(), results.root().resolve()
    return str(place.relative_to(root)) if place.is_relative_to(root) else str(place)


def _measured(made: Entry, *runs: Path) -> Entry:
    """Add the latencies, the times after deaths and the length of these runs."""
    took: list[float] = []
    for run in runs:
        try:
            stored = results.read(run)
            for found in stored["checkers"].values():
                made.regrant_s += found.get("after_deaths_s") or []
            length = float((stored.get("stats") or {}).get("duration_s") or 0.0)
            made.duration_s = (made.duration_s or 0.0) + length
            if len(runs) == 1 and made.holds is None:
                made.holds = (stored.get("stats") or {}).get("holds")
            took += _granted_ms(run)
        except (BadArguments, HistoryError, OSError, KeyError):
            continue  # a bench has no history, a crashed run not all of it
    if took:
        found = zip(QUANTILES, quantiles(took), strict=True)
        made.acquire_ms = {f"p{percent}": round(ms, 3) for percent, ms in found}
    return made


def _granted_ms(run: Path) -> Iterator[float]:
    for call in read(run / "history.jsonl").calls():
        if call.begin.f == "acquire" and call.end is not None and call.end.type == "ok":
            yield (call.end.time - call.begin.time) / 1e6


def figures(entries: Sequence[Entry]) -> Figures:
    """Return the figures of the entries for the trend."""
    rates = {}
    for question in ("service", "clients", "data"):
        # Rates count fixed schedules; cells are the same in each nightly run.
        found = [one.rates[question] for one in entries
                 if one.key.startswith("matrix/") and question in one.rates]  # fmt: skip
        rates[question] = Share(sum(one["count"] for one in found), sum(one["of"] for one in found))
    calm = [one for one in entries if one.key.startswith("matrix/") and "/none/" in one.key]
    deaths = [time_s for one in entries for time_s in one.regrant_s]
    return Figures(
        rates=rates,
        acquire_p50_ms={one.lock: one.acquire_ms["p50"] for one in calm if one.acquire_ms},
        regrant_s={
            "count": len(deaths),
            "median": round(median(deaths), 3) if deaths else None,
            "longest": max(deaths, default=None),
        },
    )
