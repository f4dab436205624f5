"""Judges a stored history, finished or not: results.json and report.html.

It needs no cluster: `fencepost analyze` judges any stored run again, even one that was killed, and
one that is still going on, as far as it has come.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fencepost.checker.checker import Run
from fencepost.checker.checkers import CHECKERS, check, valid
from fencepost.checker.facts.ends import ends_with
from fencepost.checker.facts.faults import faults
from fencepost.checker.facts.holds import holds
from fencepost.checker.history.history import History
from fencepost.checker.verdict import Valid, Verdict
from fencepost.harness.clients import rejected
from fencepost.harness.clients.recorder import finish
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.judge.fault_facts import with_facts
from fencepost.harness.locked import is_live
from fencepost.harness.results import results
from fencepost.harness.spec.early_stop import first_violation, stopping
from fencepost.nemesis.families import FAMILIES
from fencepost.report.pages import run as report
from fencepost.runfiles import SCHEMA

GOING_ON = "The run was going on when this was judged: it says nothing of what came later."
ENDED_FROM_OUTSIDE = "The run was ended from outside before it was over."
# Judging makes millions of objects, hardly any of them in cycles: looking for these less often than
# by default saves a tenth of the time.
_RARE = (1_000_000, 20, 50)


@dataclass(frozen=True)
class Outcome:
    """A judged run: its folder, its verdict, and each checker's; `results` as in results.json."""

    folder: Path
    valid: Valid
    verdicts: dict[str, Verdict]
    results: dict[str, Any]


def judge(folder: Path, notes: list[str] | None = None, written: int | None = None) -> Outcome:
    """Sort a run's history by time, check it, and write results.json and report.html.

    `notes` say what went wrong with the run itself; None keeps those that are stored. `written`:
    how many ops its recorder wrote, which must be those that are read.

    Raises:
        BadArguments: test.json cannot be read, or names a checker that does not exist.
        HistoryError: history.jsonl is no history.
    """
    usual = gc.get_threshold()
    gc.set_threshold(*_RARE)
    try:
        return _judge(folder, notes, written)
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def _judge(folder: Path, notes: list[str] | None, written: int | None) -> Outcome:
    live = is_live(folder / "history.jsonl")
    with _frozen():
        history = with_facts(finish(folder / "history.jsonl"))
    test = _description(folder, history, store=not live)
    run = Run(history, test, results.server_logs(folder))
    verdicts = _certain(check(run, test["checkers"]), run, rejected.complete_until(folder))
    place = folder / "results.json"
    notes = [*(_noted(place, test, live) if notes is None else notes), *_amiss(history, written)]
    lost, harmless = rejected.said(folder)
    early = history.end_ns / 1e9 < test.get("time_s", 0)
    stops = stopping(test)
    seen = any(verdicts[name].valid is False for name in stops)
    if stops and early and not seen and not notes:
        notes.append("It was stopped by what looked like a violation and was none.")
    if notes or lost:
        verdicts["run"] = Verdict("unknown", " ".join([*notes, *lost]))
    found = {
        "schema": SCHEMA,
        "test": test.get("name", folder.name),
        "valid": valid(verdicts),
        "seed": test.get("seed"),
        "checkers": {name: verdict.to_json() for name, verdict in verdicts.items()},
        "faults": [fault.to_json() for fault in faults(history)],
        "first_violation": first_violation(verdicts),
        "stats": _stats(history, test),
        "notes": [*notes, *lost, *harmless, *history.notes],
        "run_notes": notes,
        "live": live,
    }
    # A run that has ended meanwhile has judged itself, and knows more.
    if not (live and _stored(place)):
        results.write(place, found)
        write_report(folder, history, found)
    return Outcome(folder, found["valid"], verdicts, found)


def _certain(verdicts: dict[str, Verdict], run: Run, until_ns: int | None) -> dict[str, Verdict]:
    """Take back each violation that what is missing of a client may explain.

    `until_ns`: when the first of them was heard for the last time. What is wrong up to then is
    wrong, whatever came later.
    """
    wrong = [name for name, verdict in verdicts.items() if verdict.valid is False]
    if until_ns is None or not wrong:
        return verdicts
    begin = History([op for op in run.history if op.time <= until_ns])
    surely = check(replace(run, history=begin), wrong)
    doubt = f"Not certain: from {until_ns / 1e9:.3f} s on an event that explains it may be missing."
    return {
        name: replace(found, valid="unknown", summary=f"{found.summary} {doubt}")
        if name in wrong and surely[name].valid is not False
        else found
        for name, found in verdicts.items()
    }


@contextmanager
def _frozen() -> Iterator[None]:
    """Keep what is made within out of garbage collections until the run is judged.

    A long history is millions of objects, and each collection would look at them all.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def write_report(
    folder: Path, history: History | None = None, found: dict[str, Any] | None = None
) -> Path:
    """Write report.html into the folder of a run, with the families' colours; returns its path.

    `history` and `found`, its results, are read from there unless they are known.
    """
    return report.render(folder, _colour, history, found)


def _colour(family: str) -> tuple[str, str] | None:
    found = FAMILIES.get(family)
    return (found.colour.light, found.colour.dark) if found else None


def _noted(place: Path, test: dict[str, Any], live: bool) -> list[str]:
    """The run's stored notes. A run without results was killed, which is its note."""
    if live:
        return [GOING_ON]
    if (stored := _stored(place)) is not None:
        return list(stored.get("run_notes", []))
    return [ENDED_FROM_OUTSIDE] if "started" in test else []


def _stored(place: Path) -> dict[str, Any] | None:
    """A run's results; None if there are none, or only what was found while it went on."""
    if not place.is_file():
        return None
    stored = results.read(place.parent)
    return None if stored.get("live") else stored


def _amiss(history: History, written: int | None) -> list[str]:
    if written in (None, len(history)):
        return []
    return [f"Its recorder wrote {written} ops, and {len(history)} are in its history."]


def _description(folder: Path, history: History, store: bool) -> dict[str, Any]:
    """Read test.json; for a history from elsewhere, write one with what its ops tell."""
    path = folder / "test.json"
    test: dict[str, Any] = {"name": folder.name}
    if path.is_file():
        test = results.read_test(folder)
    if "checkers" not in test:
        asked = {name: checker.touches(history) for name, checker in CHECKERS.items()}
        test["checkers"] = [name for name, something in asked.items() if something]
        test["not_checked"] = {
            name: "the history has nothing for it"
            for name, something in asked.items()
            if not something
        }
        if store:
            results.write(path, test)
    if _tell_tokens(test, history) and store:
        results.write(path, test)
    for name in test["checkers"]:
        choose("checker", name, CHECKERS)
    try:
        ends_with(test)
    except ValueError as error:
        raise BadArguments(f"{path}: {error}") from error
    return test


def _tell_tokens(test: dict[str, Any], history: History) -> bool:
    """Say of a lock of one's own whether its grants carried tokens, which nobody knew before.

    Returns whether that had to be said.
    """
    lock = test.get("lock") or {}
    if lock.get("token") != "unknown":
        return False
    test["lock"] = lock | {
        "token": any(op.value.get("token") is not None for op in history.clients())
    }
    for name in list(test["checkers"]):
        if name in CHECKERS and (why := CHECKERS[name].applies(test)):
            test["checkers"].remove(name)
            test.setdefault("not_checked", {})[name] = why
    return True


def _stats(history: History, test: dict[str, Any]) -> dict[str, Any]:
    counts: dict[str, dict[str, int]] = {}
    many = Counter((call.begin.f, call.type) for call in history.calls())
    for (f, type), number in many.items():
        counts.setdefault(f, {"ok": 0, "fail": 0, "info": 0})[type] = number
    return {
        "ops": many.total(),
        "holds": len(holds(history, test)),
        "duration_s": history.end_ns / 1e9,
        "by_f": counts,
    }
