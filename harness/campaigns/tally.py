"""Counts a run's holds and violations for the matrix, from its folder: a row of matrix.json."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from fencepost.checker import leadership
from fencepost.checker.facts.faults import faults
from fencepost.checker.facts.holds import FOREVER, holds
from fencepost.checker.facts.reigns import figures, reigns, take_overs
from fencepost.checker.history.history import History
from fencepost.checker.verdict import Valid
from fencepost.harness.judge.judge import Outcome
from fencepost.report import stored
from fencepost.report.words.questions import questions, verdict

_JUDGES = {"service": "lease_exclusion", "clients": "mutual_exclusion", "data": "resource"}
"""For each question, the checker whose evidence gives the violating holds."""
_OF_LEADERS = (
    "reigns", "overlaps", "overlap_longest_s", "overlap_total_s", "clock_error_s",
    "without_leader_s", "changes_without_cause", "beats_after_stopped",
)  # fmt: skip


def tally(outcome: Outcome) -> dict[str, Any]:
    """Return the row of a judged run.

    `granted` and the longest times without a grant cover the time in which clients worked and
    faults came, `work_s`, and not the wait for the last grants after it. `longest_calm_s` leaves
    out the time in which a fault was on: a lock that is not granted while most of its servers are
    down is not at fault, and one that stays unavailable afterwards is. `blind`: the lock gives its
    clients no deadline, so lease_exclusion can only check whether two clients believed at once.
    """
    run = stored.load(outcome.folder, results=outcome.results)
    checkers: Mapping[str, Any] = outcome.results["checkers"]
    begin_s = float(run.test.get("ready_s") or 0.0)
    over_s = run.history.end_ns / 1e9
    granted = holds(run.history, run.test)
    times = [hold.start / 1e9 for hold in granted]
    on = [
        (fault.start / 1e9, over_s if fault.end is None else fault.end / 1e9)
        for fault in faults(run.history)
    ]
    # A fault without an end lasts as long as it was scheduled.
    end_s = max(begin_s + float(run.test["time_s"]), *(until for _, until in on), 0.0)
    end_s = min(end_s, over_s)
    service, clients, _ = questions(checkers)
    return {
        "valid": outcome.valid,
        "checkers": {name: verdict(found.get("valid")) for name, found in checkers.items()},
        "service": {part.checker: part.valid for part in service.parts},
        "questions": {"service": service.valid, "clients": clients.valid, "data": _data(checkers)},
        "holds": len(times),
        "blind": all(hold.deadline == FOREVER for hold in granted),
        "granted": bisect_right(times, end_s) - bisect_left(times, begin_s),
        "work_s": max(end_s - begin_s, 0.0),
        "violations": {name: violating(run.history, checkers, name) for name in _JUDGES},
        "first_s": {name: _first_s(checkers, name, begin_s) for name in _JUDGES},
        "longest_s": longest(times, [(begin_s, end_s)]),
        "longest_calm_s": longest(times, calm(on, begin_s, end_s)),
        "faults": len(outcome.results["faults"]),
        **(
            {"leaders": leaders(run.history, run.test)}
            if leadership.CHECKER.name in checkers
            else {}
        ),
    }


def leaders(history: History, test: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of an election, and every time of a take-over in s, by its cause."""
    known = figures(history, test)
    took: dict[str, list[float]] = {}
    for cause, took_ns in take_overs(reigns(history, test), history, test):
        took.setdefault(cause, []).append(round(took_ns / 1e9, 6))
    return {name: known[name] for name in _OF_LEADERS} | {"took_s": took}


def _data(checkers: Mapping[str, Any]) -> Valid | None:
    """Return whether the data survived; a defect of the store alone does not count."""
    if "resource" not in checkers:
        return None
    data = verdict(checkers["resource"].get("valid"))
    sound = all(
        verdict(checkers[name].get("valid")) is True
        for name in ("store", "faults", "run")
        if name in checkers
    )
    return "unknown" if data is True and not sound else data


def violating(history: History, checkers: Mapping[str, Any], question: str) -> int:
    """Return the number of violating holds: each counts once, whatever was done under it. A phantom
    write, made under no hold, counts by the read that showed it."""
    pieces = (checkers.get(_JUDGES[question]) or {}).get("evidence") or ()
    if question != "data":
        return len({piece["ops"][1] for piece in pieces})
    found = set()
    for piece in pieces:
        op = history.ops[piece["ops"][0]]
        hold = op.value.get("hold")
        found.add((op.process, hold) if hold is not None else op.index)
    return len(found)


def _first_s(checkers: Mapping[str, Any], question: str, begin_s: float) -> float | None:
    """Return when it was first violated, in s since the clients were ready; None if never."""
    pieces = (checkers.get(_JUDGES[question]) or {}).get("evidence") or ()
    times = [piece["time_ns"] / 1e9 for piece in pieces if piece.get("time_ns") is not None]
    return max(min(times) - begin_s, 0.0) if times else None


def calm(on: Iterable[tuple[float, float]], begin: float, end: float) -> list[tuple[float, float]]:
    """Return the spans between `begin` and `end` in which none of these was on."""
    found = []
    for start, until in sorted(on):
        if start > begin:
            found.append((begin, min(start, end)))
        begin = max(begin, until)
        if begin >= end:
            return found
    return [*found, (begin, end)]


def longest(times: Sequence[float], spans: Iterable[tuple[float, float]]) -> float:
    """Return the longest part of a span that contains none of these times, which ascend."""
    most = 0.0
    for begin, end in spans:
        inside = times[bisect_left(times, begin) : bisect_right(times, end)]
        marks = [begin, *inside, end]
        most = max(most, *(later - earlier for earlier, later in pairwise(marks)))
    return most
