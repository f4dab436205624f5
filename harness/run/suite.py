"""A suite: controls, scenarios against their published outcomes, and one run with random faults."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost.checker.verdict import Valid
from fencepost.harness.run import results
from fencepost.harness.run.judge import Outcome
from fencepost.harness.run.scripted import of_suite
from fencepost.harness.run.spec import Spec
from fencepost.harness.run.validation import validate
from fencepost.report import suite as report
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.caused import unnamed
from fencepost.workloads.scenarios.registry import SUITES
from fencepost.workloads.scenarios.scenario import Scenario
from fencepost.workloads.scenarios.suite import TimedRun


@dataclass(frozen=True)
class Item:
    """One run of a suite. If it expects nothing, its verdict is a finding."""

    spec: Spec
    entry: Scenario | TimedRun

    @property
    def scenario(self) -> Scenario | None:
        return self.entry if isinstance(self.entry, Scenario) else None

    @property
    def expected(self) -> Mapping[str, Valid]:
        return self.entry.expected

    @property
    def name(self) -> str:
        return self.entry.name


def items(suite: str, seed: int, server: Mapping[str, str] | None = None) -> list[Item]:
    """The runs of a suite, in order. `server`: versions of servers for runs that name none."""
    found = SUITES[suite]
    return [
        _scripted(suite, found.lock, entry, seed, server or {})
        if isinstance(entry, Scenario)
        else _timed(suite, found.lock, entry, seed, server or {})
        for entry in found.entries
    ]


def _scripted(suite: str, lock: str, entry: Scenario, seed: int, server: Mapping[str, str]) -> Item:
    name = f"{suite}-{entry.name}-{entry.guard}"
    return Item(
        of_suite(name, lock, entry, seed, server={**server, **entry.settings.get("server", {})}),
        entry,
    )


def _timed(suite: str, lock: str, entry: TimedRun, seed: int, server: Mapping[str, str]) -> Item:
    lock = entry.lock or lock
    spec = Spec(
        name=f"{suite}-{entry.name}-{entry.guard}",
        lock=lock,
        options=LOCKS[lock].read_options({}) | dict(entry.options),
        guard=entry.guard,
        seed=seed,
        **{**entry.settings, "server": {**server, **entry.settings.get("server", {})}},
    )
    return Item(validate(spec), entry)


def row(item: Item, outcome: Outcome, folder: Path) -> dict[str, Any]:
    """The suite's record of one run."""
    observed = {name: outcome.verdicts[name].valid for name in item.expected}
    if not item.expected:
        observed = {name: verdict.valid for name, verdict in outcome.verdicts.items()}
    proved = outcome.verdicts["faults"].valid is True and "run" not in outcome.verdicts
    as_expected = not item.expected or (
        proved and observed == dict(item.expected) and not _uncaused(item, outcome)
    )
    return {
        "test": item.spec.name,
        "run": _relative(outcome.folder, folder),
        "scenario": item.name,
        "lock": item.spec.lock,
        "guard": item.spec.guard,
        "claim": item.entry.claim,
        "source": item.entry.source,
        "what": item.entry.what,
        "expected": dict(item.expected),
        "observed": observed,
        "as_expected": as_expected,
        "why": "" if as_expected else _why(item, outcome),
    }


def _relative(run: Path, folder: Path) -> str:
    return os.path.relpath(run, folder)


def _why(item: Item, outcome: Outcome) -> str:
    """Describe what differs from the expectation; first, whether the schedule ran at all."""
    reasons = [
        f"{name}: {outcome.verdicts[name].summary}"
        for name in ("run", "faults")
        if name in outcome.verdicts and outcome.verdicts[name].valid is not True
    ]
    reasons += [
        f"{name} is {outcome.verdicts[name].valid}, {valid} was expected: "
        f"{outcome.verdicts[name].summary}"
        for name, valid in item.expected.items()
        if outcome.verdicts[name].valid != valid
    ]
    return " ".join(reasons or _uncaused(item, outcome))


def _uncaused(item: Item, outcome: Outcome) -> list[str]:
    """What names another cause than the scenario's, a sentence each."""
    return unnamed(item.scenario, outcome.verdicts) if item.scenario else []


def run(
    suite: str,
    chosen: list[Item],
    carry_out: Callable[[Item], Outcome],
    say: Callable[[dict[str, Any], Outcome], None],
) -> tuple[Path, list[dict[str, Any]]]:
    """Carry out a suite's runs; return its folder and its rows.

    suite.json is written after every run, and the report at the end, so that a suite that is
    interrupted leaves what it found.
    """
    folder = results.create(f"suite-{suite}")
    rows: list[dict[str, Any]] = []
    try:
        for item in chosen:
            outcome = carry_out(item)
            rows.append(row(item, outcome, folder))
            results.write(folder / "suite.json", rows)
            say(rows[-1], outcome)
    finally:
        if rows:
            report.render(folder)
    return folder, rows


def tally(rows: list[dict[str, Any]]) -> str:
    """How many runs ended as expected, in a sentence."""
    bad = sum(1 for row in rows if not row["as_expected"])
    expected = sum(1 for row in rows if row["expected"])
    return f"{expected - bad} of {expected} came out as published."


def summary(name: str, seed: int, rows: list[dict[str, Any]]) -> str:
    """A suite in Markdown: what was not as expected, and what runs without expectation found."""
    lines = [f"### {name}, seed {seed}: {tally(rows)}", ""]
    lines += [
        f"- **{row['scenario']}**, guard {row['guard']}: {row['why']}"
        for row in rows
        if not row["as_expected"]
    ]
    for row in rows:
        if not row["expected"]:
            broken = [checker for checker, valid in row["observed"].items() if valid is not True]
            found = ", ".join(broken) or "nothing broken"
            lines.append(f"- {row['scenario']}, guard {row['guard']} (a finding): {found}")
    return "\n".join([*lines, "", ""])
