"""Judges a stored history, finished or not: results.json and report.html.

It needs no cluster: `fencepost analyze` judges any stored run again, even one that was killed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost.checker.checker import Run
from fencepost.checker.checkers import CHECKERS, check, valid
from fencepost.checker.ends import ends_with
from fencepost.checker.faults import faults
from fencepost.checker.history import History
from fencepost.checker.holds import holds
from fencepost.checker.verdict import Valid, Verdict
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.run import results
from fencepost.harness.run.early_stop import first_violation, stopping
from fencepost.harness.run.recorder import finish
from fencepost.nemesis.families import FAMILIES
from fencepost.report import run as report


@dataclass(frozen=True)
class Outcome:
    """A judged run: its folder, its verdict, and each checker's; `results` as in results.json."""

    folder: Path
    valid: Valid
    verdicts: dict[str, Verdict]
    results: dict[str, Any]


def judge(folder: Path, notes: list[str] | None = None) -> Outcome:
    """Sort a run's history by time, check it, and write results.json and report.html.

    `notes` say what went wrong with the run itself; None keeps those that are stored.

    Raises:
        BadArguments: test.json cannot be read, or names a checker that does not exist.
        HistoryError: history.jsonl is no history.
    """
    history = finish(folder / "history.jsonl")
    test = _description(folder, history)
    place = folder / "results.json"
    notes = _noted(place, test) if notes is None else list(notes)
    verdicts = check(Run(history, test, results.server_logs(folder)), test["checkers"])
    early = history.end_ns / 1e9 < test.get("time_s", 0)
    stops = stopping(test)
    found = any(verdicts[name].valid is False for name in stops)
    if stops and early and not found and not notes:
        notes.append("It was stopped by what looked like a violation and was none.")
    if notes:
        verdicts["run"] = Verdict("unknown", " ".join(notes))
    written = {
        "test": test.get("name", folder.name),
        "valid": valid(verdicts),
        "seed": test.get("seed"),
        "checkers": {name: verdict.to_json() for name, verdict in verdicts.items()},
        "faults": [fault.to_json() for fault in faults(history)],
        "first_violation": first_violation(verdicts),
        "stats": _stats(history),
        "notes": [*notes, *history.notes],
        "run_notes": notes,
    }
    results.write(place, written)
    write_report(folder)
    return Outcome(folder, written["valid"], verdicts, written)


def write_report(folder: Path) -> Path:
    """Write report.html into the folder of a run, with the families' colours; returns its path."""
    return report.render(folder, _colour)


def _colour(family: str) -> tuple[str, str] | None:
    found = FAMILIES.get(family)
    return (found.colour.light, found.colour.dark) if found else None


def _noted(place: Path, test: dict[str, Any]) -> list[str]:
    """The run's stored notes. A run without results.json was killed, which is its note."""
    if place.is_file():
        return list(results.read(place).get("run_notes", []))
    return ["The run was ended from outside before it was over."] if "started" in test else []


def _description(folder: Path, history: History) -> dict[str, Any]:
    """Read test.json; for a history from elsewhere, write one with what its ops tell."""
    path = folder / "test.json"
    test = results.read(path) if path.is_file() else {"name": folder.name}
    if not isinstance(test, dict):
        raise BadArguments(f"{path}: not a JSON object")
    if "checkers" not in test:
        asked = {name: checker.touches(history) for name, checker in CHECKERS.items()}
        test["checkers"] = [name for name, something in asked.items() if something]
        test["not_checked"] = {
            name: "the history has nothing for it"
            for name, something in asked.items()
            if not something
        }
        results.write(path, test)
    for name in test["checkers"]:
        choose("checker", name, CHECKERS)
    try:
        ends_with(test)
    except ValueError as error:
        raise BadArguments(f"{path}: {error}") from error
    return test


def _stats(history: History) -> dict[str, Any]:
    counts: dict[str, dict[str, int]] = {}
    for call in history.calls():
        by = counts.setdefault(call.begin.f, {"ok": 0, "fail": 0, "info": 0})
        by[call.type] += 1
    return {
        "ops": sum(sum(by.values()) for by in counts.values()),
        "holds": len(holds(history)),
        "duration_s": history.end_ns / 1e9,
        "by_f": counts,
    }
