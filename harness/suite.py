"""A suite: controls, every scenario against its published outcome, and one run at random."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checker.verdict import Valid
from harness import store
from harness.run import Outcome
from harness.spec import Spec, scripted
from report import suite as report
from workloads.locks.registry import LOCKS
from workloads.scenarios.scenario import Scenario
from workloads.scenarios.suites import SUITES

CONTROL_S = 3.0
RANDOM_S = 30.0
RANDOM_FAMILIES = ("partition", "pause", "clock", "kill")


@dataclass(frozen=True)
class Item:
    """One run of a suite. Where nothing is expected the run explores: its verdict is a finding."""

    spec: Spec
    expected: Mapping[str, Valid]
    claim: str
    source: str
    what: str
    scenario: Scenario | None = None

    @property
    def name(self) -> str:
        return self.scenario.name if self.scenario else self.spec.name.split("-")[1]


def items(suite: str, seed: int) -> list[Item]:
    """The runs of a suite, in order."""
    scripted = [_scripted(suite, scenario, seed) for scenario in SUITES[suite]]
    return [*_controls(suite, seed), *scripted, _random(suite, seed)]


def _options(lock: str, **chosen: Any) -> dict[str, Any]:
    return LOCKS[lock].read_options({}) | chosen


def _scripted(suite: str, scenario: Scenario, seed: int) -> Item:
    spec = scripted(f"{suite}-{scenario.name}-{scenario.guard}", suite, scenario, seed)
    return Item(spec, scenario.expected, scenario.claim, scenario.source, scenario.what, scenario)


def _controls(suite: str, seed: int) -> list[Item]:
    kept = dict.fromkeys(
        ("lease_exclusion", "mutual_exclusion", "ownership", "liveness", "resource"), True
    )
    what = "No faults: five clients take the lock in turn and every promise holds."
    rows = [("none", "none", kept), ("fenced", "one", kept | {"fencing": True})]
    return [
        Item(
            Spec(
                name=f"{suite}-control-{guard}",
                lock=suite,
                options=_options(suite, token=token),
                guard=guard,
                time_s=CONTROL_S,
                seed=seed,
                ttl_ms=1000,
            ),
            expected,
            "control",
            "",
            what,
        )
        for guard, token, expected in rows
    ]


def _random(suite: str, seed: int) -> Item:
    spec = Spec(
        name=f"{suite}-random",
        lock=suite,
        options=_options(suite),
        nemesis=RANDOM_FAMILIES,
        time_s=RANDOM_S,
        seed=seed,
        ttl_ms=1000,
        interval_s=4.0,
        work={"think_ms": 100},
    )
    return Item(spec, {}, "exploration", "", f"All four families of faults at random, seed {seed}.")


def row(item: Item, outcome: Outcome, folder: Path) -> dict[str, Any]:
    """The suite's record of one run."""
    observed = {name: outcome.verdicts[name].valid for name in item.expected}
    if not item.expected:
        observed = {name: verdict.valid for name, verdict in outcome.verdicts.items()}
    proved = outcome.verdicts["faults"].valid is True and "run" not in outcome.verdicts
    as_expected = not item.expected or (proved and observed == dict(item.expected))
    return {
        "test": item.spec.name,
        "run": _relative(outcome.run, folder),
        "scenario": item.name,
        "guard": item.spec.guard,
        "claim": item.claim,
        "source": item.source,
        "what": item.what,
        "expected": dict(item.expected),
        "observed": observed,
        "as_expected": as_expected,
        "why": "" if as_expected else _why(item, outcome),
    }


def _relative(run: Path, folder: Path) -> str:
    return os.path.relpath(run, folder)


def _why(item: Item, outcome: Outcome) -> str:
    """What came out otherwise, in words: first whether the schedule ran at all."""
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
    return " ".join(reasons)


def run(
    suite: str,
    chosen: list[Item],
    carry_out: Callable[[Item], Outcome],
    say: Callable[[dict[str, Any], Outcome], None],
) -> tuple[Path, list[dict[str, Any]]]:
    """Carry out a suite's runs; its folder and its rows.

    suite.json is written after every run, so that a suite that is interrupted leaves what it
    found.
    """
    folder = store.create(f"suite-{suite}")
    rows: list[dict[str, Any]] = []
    for item in chosen:
        outcome = carry_out(item)
        rows.append(row(item, outcome, folder))
        store.write(folder / "suite.json", rows)
        say(rows[-1], outcome)
    report.render(folder)
    return folder, rows
