"""Judges a stored history, finished or not: results.json and report.html.

It needs no cluster: `fencepost analyze` judges any stored run again. It also judges a run that was
killed, and one in progress up to the present. The steps, in order:

1. The history is finished: ops without an end get one, all are sorted by time (recorder.py), and
   faults of older runs get the facts that they lack (fault_facts.py).
2. Facts that only the history has complete the run's description (learnt.py), in run.json.
3. The checkers judge it (verdict.py).
4. results.json and the page are written.

For a run in progress, nothing is stored that its end would have to correct.
"""

from __future__ import annotations

import gc
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost.checker.checker import Run
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.facts.ends import ends_with
from fencepost.checker.history.history import History
from fencepost.checker.verdict import Valid, Verdict
from fencepost.harness.clients import rejected
from fencepost.harness.clients.recorder import finish
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.judge.fault_facts import with_facts
from fencepost.harness.judge.learnt import learnt
from fencepost.harness.judge.verdict import Missing, checked, results_of, stopped_in_vain
from fencepost.harness.locked import is_live
from fencepost.harness.results import results
from fencepost.harness.results.run_facts import learn
from fencepost.harness.servers import crash_lines
from fencepost.nemesis.families import FAMILIES
from fencepost.report.pages import run as report
from fencepost.runfiles import FACTS, RESULTS, TEST, merged

GOING_ON = "The run was in progress when this was judged: later events are not covered."
ENDED_FROM_OUTSIDE = "The run was ended from outside before its time."
# Judging makes millions of objects, few of them in cycles: collecting garbage less often than by
# default saves a tenth of the time.
_RARE = (1_000_000, 20, 50)
_LONG = 20_000
"""The number of ops of a history that is worth being frozen."""


@dataclass(frozen=True)
class Outcome:
    """A judged run: its folder, its verdict, and each checker's; `results` as in results.json."""

    folder: Path
    valid: Valid
    verdicts: dict[str, Verdict]
    results: dict[str, Any]


def judge(folder: Path, notes: list[str] | None = None, written: int | None = None) -> Outcome:
    """Sort a run's history by time, check it, and write results.json and report.html.

    `notes` are errors of the run itself; None keeps the stored ones. `written`: the number of ops
    that its recorder wrote, which must equal the number read.

    Raises:
        BadArguments: test.json cannot be read, or names a checker that does not exist.
        HistoryError: history.jsonl is no history.
    """
    with ExitStack() as later:
        later.callback(gc.set_threshold, *gc.get_threshold())
        gc.set_threshold(*_RARE)
        return _judge(folder, notes, written, later)


def _judge(folder: Path, notes: list[str] | None, written: int | None, later: ExitStack) -> Outcome:
    live = is_live(folder / "history.jsonl")
    history = _history(folder, later)
    test = _described(folder, history, live)
    run = Run(history, test, results.server_logs(folder), crash_lines.known(test))
    missing = Missing(rejected.complete_until(folder), *rejected.read_rejected(folder))
    found = checked(run, missing.until_ns)
    history.notes[:0] = _sorted_before(folder, history, missing)
    notes = [*(_noted(folder, test, live) if notes is None else notes), *_amiss(history, written)]
    notes = notes or stopped_in_vain(run, found)
    if notes or missing.lost:
        found["run"] = Verdict("unknown", " ".join([*notes, *missing.lost]))
    stored = results_of(folder.name, run, found, missing, notes, live)
    # A run that has ended meanwhile has judged itself with more facts.
    if not (live and results.of_ended(folder)):
        results.write(folder / RESULTS, stored)
        write_report(folder, history, stored)
    return Outcome(folder, stored["valid"], found, stored)


def write_report(
    folder: Path, history: History | None = None, found: dict[str, Any] | None = None
) -> Path:
    """Write report.html into the folder of a run; return its path.

    `history` and `found`, its results, are read from there unless given.
    """
    return report.render(folder, _colour, history, found)


def _colour(family: str) -> tuple[str, str] | None:
    found = FAMILIES.get(family)
    return (found.colour.light, found.colour.dark) if found else None


def _described(folder: Path, history: History, live: bool) -> dict[str, Any]:
    """Read the run's description; complete it with facts from its ops."""
    path, test = folder / TEST, {"name": folder.name}
    if path.is_file() or (folder / FACTS).is_file():
        test = results.read_test(folder)
    facts = learnt(test, history)
    if facts and not live:
        learn(folder, **(facts if path.is_file() else test | facts))
    test = merged(test, facts)
    for name in test["checkers"]:
        choose("checker", name, CHECKERS)
    try:
        ends_with(test)
    except ValueError as error:
        raise BadArguments(f"{path}: {error}") from error
    return test


def _history(folder: Path, later: ExitStack) -> History:
    """Return the run's history, sorted. `later` undoes the freezing of a long one.

    A long history is millions of objects, and each garbage collection would visit them all, so they
    are frozen. If the process has frozen objects of its own, none are added: they could only be
    unfrozen together.
    """
    gc.disable()
    try:
        history = with_facts(finish(folder / "history.jsonl"))
        # To count the frozen objects visits each of them.
        if len(history.ops) >= _LONG and not gc.get_freeze_count():
            gc.freeze()
            later.callback(gc.unfreeze)
    finally:
        gc.enable()
    return history


def _noted(folder: Path, test: dict[str, Any], live: bool) -> list[str]:
    """Return the run's stored notes. A run without results was killed, and its note says so."""
    if live:
        return [GOING_ON]
    if (stored := results.of_ended(folder)) is not None:
        return list(stored.get("run_notes", []))
    return [ENDED_FROM_OUTSIDE] if "started" in test else []


def _sorted_before(folder: Path, history: History, missing: Missing) -> list[str]:
    """Return the stored notes on the history itself: an earlier judgement put it in order."""
    stored = results.of_ended(folder) or {}
    known = {*stored.get("run_notes", ()), *missing.lost, *missing.harmless, *history.notes}
    return [note for note in stored.get("notes", ()) if note not in known]


def _amiss(history: History, written: int | None) -> list[str]:
    if written in (None, len(history)):
        return []
    return [f"Its recorder wrote {written} ops, and {len(history)} are in its history."]
