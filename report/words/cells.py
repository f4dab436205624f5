"""Sums up a cell of the matrix: the runs of one lock, under one fault, with one guard.

A run is a row from harness/campaigns/tally.py: verdicts, holds, violating holds, times. A cell adds
up its runs and has one state. The three questions stay apart: `service` counts holds that were
granted while another's lease ran, `clients` those that began while another client still counted on
its hold, `data` those under which a write damaged the resource. A cell of an elector has `leaders`
(leaders.py) too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from fencepost.checker.checkers import of_time
from fencepost.checker.verdict import Valid, worst
from fencepost.report.words import leaders
from fencepost.report.words.intervals import median, not_seen, share
from fencepost.report.words.questions import verdict

QUESTIONS = ("service", "clients", "data")


@dataclass(frozen=True)
class State:
    """The state of a cell. `sign` is its letter on the page, `word` its name, `what` when it
    applies."""

    sign: str
    word: str
    what: str


STATES = {
    "broken": State(
        "B", "broken", "the lock service broke a promise, for example granted a lease twice"
    ),
    "damaged": State("D", "data damaged", "an update was lost, or a late write accepted"),
    "unavailable": State(
        "N", "not available", "the lock was never granted, or not in time after a fault"
    ),
    "believed": State(
        "C", "clients believed", "two clients believed to hold the lock, and the data survived"
    ),
    "unknown": State("?", "unknown", "a run could not be judged, or its faults were not proved"),
    "kept": State("K", "kept", "no violation was seen in the holds counted"),
    "untested": State("–", "not tested", "it is not applicable, or not run yet"),
}
"""From the worst to the best. A cell is in the first that applies; `marks` has all that apply."""


def summed(cell: Mapping[str, Any], calm: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Sum up the runs of a cell. `calm` is the sum of the same lock and guard without faults, for
    its availability."""
    runs = [run for run in cell["runs"] if not run.get("crashed")]
    crashed = len(cell["runs"]) - len(runs)
    marks = _marks(cell, runs, crashed)
    holds = sum(run["holds"] for run in runs)
    work_s = sum(run["work_s"] for run in runs)
    rate = sum(run["granted"] for run in runs) / work_s if work_s else None
    usual = (calm or {}).get("holds_a_second")
    led = leaders.summed(runs)
    said = words(cell, runs, crashed, holds)
    return {
        "state": marks[0],
        "marks": marks,
        "words": f"{said} {leaders.words(led)}" if led and holds else said,
        "runs": len(runs),
        "crashed": crashed,
        "holds": holds,
        "checkers": _counted(runs),
        "questions": {name: worst(_asked(runs, name)) if runs else None for name in QUESTIONS},
        "violations": {name: rated(runs, name) for name in QUESTIONS},
        "holds_a_second": rate,
        "availability": rate / usual if usual and rate is not None else None,
        "longest_s": max((run["longest_s"] for run in runs), default=None),
        "longest_calm_s": max((run["longest_calm_s"] for run in runs), default=None),
        "leaders": led,
    }


def _marks(cell: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], crashed: int) -> list[str]:
    if not runs:
        return ["unknown" if crashed else "untested"]
    by_question = {name: worst(_asked(runs, name)) for name in QUESTIONS}
    found = []
    # A lock that is never granted counts as unavailable, not as broken exclusion.
    if any(valid is False for run in runs for valid in _service(run)):
        found.append("broken")
    if by_question["data"] is False:
        found.append("damaged")
    late = any(
        run["checkers"][name] is False for run in runs for name in run["checkers"] if of_time(name)
    )
    if late or not any(run["granted"] for run in runs):
        found.append("unavailable")
    if by_question["clients"] is False and "damaged" not in found:
        found.append("believed")
    if crashed or "unknown" in by_question.values():
        found.append("unknown")
    return found or ["kept"]


def _service(run: Mapping[str, Any]) -> list[Valid]:
    """Return the verdicts on the service, without those on time."""
    return [verdict(valid) for name, valid in run["service"].items() if not of_time(name)]


def _asked(runs: Sequence[Mapping[str, Any]], question: str) -> list[Valid]:
    answers = [run["questions"][question] for run in runs]
    return [verdict(answer) for answer in answers if answer is not None]


def _counted(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Count the runs by verdict for each checker."""
    found: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(name for run in runs for name in run["checkers"]):
        said = [verdict(run["checkers"][name]) for run in runs if name in run["checkers"]]
        found[name] = {
            "worst": worst(said),
            "true": said.count(True),
            "false": said.count(False),
            "unknown": said.count("unknown"),
        }
    return found


def rated(runs: Sequence[Mapping[str, Any]], question: str) -> dict[str, Any]:
    """Return the rate of violations in these runs: per 1,000 holds, with the 95 % interval, and the
    time of the first."""
    holds = sum(run["holds"] for run in runs)
    count = sum(run["violations"][question] for run in runs)
    low, high = share(min(count, holds), holds)
    first = [run["first_s"][question] for run in runs]
    found: dict[str, Any] = {
        "count": count,
        "per_1000": 1000 * count / holds if holds else None,
        "low": 1000 * low if holds else None,
        "high": 1000 * high if holds else None,
        "at_most": 1000 * not_seen(holds) if holds and not count else None,
        "blind": bool(holds) and all(run.get("blind") for run in runs if run["holds"]),
        "runs": sum(1 for one in first if one is not None),
        "first_s": None,
        "first_low_s": None,
        "first_high_s": None,
    }
    if found["runs"]:
        times = median([inf if one is None else one for one in first])
        for name, value in zip(("first_s", "first_low_s", "first_high_s"), times, strict=True):
            # The time is censored at the end of a run.
            found[name] = None if value == inf else value
    return found


def words(
    cell: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], crashed: int, holds: int
) -> str:
    """Describe a cell in a sentence or two."""
    if not runs:
        if crashed:
            return f"Every run crashed: {cell['runs'][-1]['crashed']}"
        return f"Not tested: {cell.get('reason') or 'it was not run yet'}."
    if not holds:
        return "The lock was never granted: nothing was tested."
    seen = [
        f"{_what(name, found)} in {rate(found)}"
        for name in QUESTIONS
        if (found := rated(runs, name))["count"]
    ]
    if not seen:
        return f"No violation was {unseen(holds)}."
    said = "; ".join(seen)
    return f"{said[0].upper()}{said[1:]}, of {holds:,} holds."


def _what(question: str, found: Mapping[str, Any]) -> str:
    if question == "service" and found["blind"]:
        return "the lock, which reports no deadline, was granted while another client still held it"
    return _COUNTED[question]


_COUNTED = {
    "service": "a lease was granted twice",
    "clients": "a second client believed",
    "data": "data was damaged",
}


def rate(found: Mapping[str, Any]) -> str:
    """Return for example '12 holds, 3.5 per 1,000 (1.8 to 6.1)'."""
    noun = "hold" if found["count"] == 1 else "holds"
    return f"{found['count']:,} {noun}, {figure(found['per_1000'])} per 1,000 ({between(found)})"


def between(found: Mapping[str, Any]) -> str:
    """Return for example '1.8 to 6.1'."""
    return f"{figure(found['low'])} to {figure(found['high'])}"


def unseen(holds: int) -> str:
    """Return for example 'seen in 1,500 holds (at most 2 per 1,000, by the rule of three)', after
    "not"."""
    return (
        f"seen in {holds:,} holds (95 %: at most {figure(1000 * not_seen(holds))} per 1,000, by "
        "the rule of three)"
    )


def figure(value: float) -> str:
    """Round to two significant digits: '0.38', '3.5', '120'."""
    return f"{value:,.0f}" if value >= 9.95 or value == 0 else f"{value:.2g}"
