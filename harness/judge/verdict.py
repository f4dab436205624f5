"""The verdict of a run: what its checkers find, and errors of the run itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencepost.checker.checker import Run
from fencepost.checker.checkers import check, valid
from fencepost.checker.facts.faults import faults
from fencepost.checker.facts.holds import holds
from fencepost.checker.history.history import History
from fencepost.checker.verdict import Verdict
from fencepost.harness.spec.early_stop import first_violation, stopping
from fencepost.runfiles import SCHEMA


@dataclass(frozen=True)
class Missing:
    """Client output that was lost or rejected (clients/rejected.py).

    `until_ns`: up to when no event is missing; None: to the end. `lost` makes the verdict unknown,
    `harmless` does not.
    """

    until_ns: int | None
    lost: Sequence[str]
    harmless: Sequence[str]


def checked(run: Run, until_ns: int | None) -> dict[str, Verdict]:
    """Return each checker's verdict; a violation that a missing client event may explain is
    unknown.

    `until_ns`: up to when no event is missing, as in Missing. A violation in that part of the
    history stands, whatever came later.
    """
    verdicts = check(run, run.test["checkers"])
    wrong = [name for name, verdict in verdicts.items() if verdict.valid is False]
    if until_ns is None or not wrong:
        return verdicts
    begin = History([op for op in run.history if op.time <= until_ns])
    surely = check(replace(run, history=begin), wrong)
    doubt = (
        f"Not certain: events from {until_ns / 1e9:.3f} s on may be missing, and could explain it."
    )
    return {
        name: replace(found, valid="unknown", summary=f"{found.summary} {doubt}")
        if name in wrong and surely[name].valid is not False
        else found
        for name, found in verdicts.items()
    }


def stopped_in_vain(run: Run, found: Mapping[str, Verdict]) -> list[str]:
    """Return the note of a run that was stopped early by a violation that its checkers do not
    confirm; empty otherwise."""
    stops = stopping(run.test)
    early = run.history.end_ns / 1e9 < run.test.get("time_s", 0)
    if not (stops and early) or any(found[name].valid is False for name in stops):
        return []
    return ["The run was stopped early by a violation that the final check did not confirm."]


def results_of(
    name: str,
    run: Run,
    found: Mapping[str, Verdict],
    missing: Missing,
    notes: Sequence[str],
    live: bool,
) -> dict[str, Any]:
    """Return results.json. `name`: used if the run's description has no name."""
    history = run.history
    return {
        "schema": SCHEMA,
        "test": run.test.get("name", name),
        "valid": valid(found),
        "seed": run.test.get("seed"),
        "checkers": {name: verdict.to_json() for name, verdict in found.items()},
        "faults": [fault.to_json() for fault in faults(history)],
        "first_violation": first_violation(found),
        "stats": _stats(run),
        "notes": [*notes, *missing.lost, *missing.harmless, *history.notes],
        "run_notes": list(notes),
        "live": live,
        "compared": run.test.get("compared"),
    }


def _stats(run: Run) -> dict[str, Any]:
    counts: dict[str, dict[str, int]] = {}
    many = Counter((call.begin.f, call.type) for call in run.history.calls())
    for (f, type), number in many.items():
        counts.setdefault(f, {"ok": 0, "fail": 0, "info": 0})[type] = number
    return {
        "ops": many.total(),
        "holds": len(holds(run.history, run.test)),
        "duration_s": run.history.end_ns / 1e9,
        "by_f": counts,
    }
