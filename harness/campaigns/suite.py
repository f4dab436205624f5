"""A suite: controls, scenarios against their published outcomes, rates, costs, random faults."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fencepost.checker.verdict import Valid
from fencepost.harness.campaigns import bench, rate_counts
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute.scripted import of_suite
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.locked import locked
from fencepost.harness.results import results
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.spec.spec import Spec, layout_of
from fencepost.harness.spec.validation import validate
from fencepost.nemesis.schedule import Scheduled, stored
from fencepost.report.pages import suite as report
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.caused import unnamed
from fencepost.workloads.scenarios.registry import SUITES
from fencepost.workloads.scenarios.scenario import Scenario
from fencepost.workloads.scenarios.suite import Cost, Entry, TimedRun


@dataclass(frozen=True)
class Item:
    """One entry of a suite with its runs: of a rate one for each seed, of a cost one for each lock,
    else a single one. If it expects nothing, its verdict is a finding."""

    specs: tuple[Spec, ...]
    entry: Entry

    @property
    def spec(self) -> Spec:
        return self.specs[0]

    @property
    def scenario(self) -> Scenario | None:
        return self.entry if isinstance(self.entry, Scenario) else None

    def schedule(self, spec: Spec) -> list[Scheduled] | None:
        """The faults of one of its runs; None where they are drawn from the seed."""
        if not isinstance(self.entry, TimedRun) or not self.entry.faults:
            return None
        return stored(list(self.entry.faults), layout_of(spec), spec.seed)

    @property
    def expected(self) -> Mapping[str, Valid]:
        return {} if isinstance(self.entry, Cost) else self.entry.expected

    @property
    def name(self) -> str:
        return self.entry.name


def items(
    suite: str, seed: int, server: Mapping[str, str] | None = None, seeds: int | None = None
) -> list[Item]:
    """The entries of a suite, in order. `server`: versions of servers for runs that name none.
    `seeds`: how many seeds rates are counted over, in the place of each one's own number."""
    found = SUITES[suite]
    return [_item(suite, found.lock, entry, seed, server or {}, seeds) for entry in found.entries]


def _item(
    suite: str, lock: str, entry: Entry, seed: int, server: Mapping[str, str], seeds: int | None
) -> Item:
    match entry:
        case Scenario():
            return _scripted(suite, lock, entry, seed, server)
        case TimedRun():
            return _timed(suite, lock, entry, seed, server, seeds)
    specs = (bench.spec_of(lock, seed) for lock in (bench.BASELINE, *entry.locks))
    return Item(tuple(replace(spec, server=dict(server)) for spec in specs), entry)


def _scripted(suite: str, lock: str, entry: Scenario, seed: int, server: Mapping[str, str]) -> Item:
    name = f"{suite}-{entry.name}-{entry.guard}"
    versions = {**server, **entry.settings.get("server", {})}
    return Item((of_suite(name, lock, entry, seed, server=versions),), entry)


def _timed(
    suite: str, lock: str, entry: TimedRun, seed: int, server: Mapping[str, str], seeds: int | None
) -> Item:
    lock = entry.lock or lock
    spec = Spec(
        name=f"{suite}-{entry.name}-{entry.guard}",
        lock=lock,
        options=LOCKS[lock].read_options({}) | dict(entry.options),
        guard=entry.guard,
        seed=seed,
        **{**entry.settings, "server": {**server, **entry.settings.get("server", {})}},
    )
    count = (seeds or entry.rate.seeds) if entry.rate else 1
    item = Item(tuple(replace(spec, seed=seed + n) for n in range(count)), entry)
    if faults := item.schedule(spec):
        asked = tuple(dict.fromkeys(fault.family for fault in faults))
        specs = (replace(one, nemesis=asked, scheduled=True) for one in item.specs)
        item = Item(tuple(specs), entry)
    validate(item.spec)
    return item


def row(item: Item, outcome: Outcome, folder: Path) -> dict[str, Any]:
    """The suite's record of one run."""
    observed = {name: outcome.verdicts[name].valid for name in item.expected}
    if not item.expected:
        observed = {name: verdict.valid for name, verdict in outcome.verdicts.items()}
    as_expected = not item.expected or (
        not _unproved(outcome) and observed == dict(item.expected) and not _uncaused(item, outcome)
    )
    return _described(item, outcome.folder, folder, _versions(item.spec, outcome)) | {
        "observed": observed,
        "as_expected": as_expected,
        "why": "" if as_expected else _why(item, outcome),
    }


def _described(item: Item, run: Path, folder: Path, versions: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "test": item.spec.name,
        "run": _relative(run, folder),
        "scenario": item.name,
        "lock": item.spec.lock,
        "guard": item.spec.guard,
        "claim": item.entry.claim,
        "source": item.entry.source,
        "what": item.entry.what,
        "versions": dict(versions),
        "expected": dict(item.expected),
        "observed": {},
    }


def _versions(spec: Spec, outcome: Outcome) -> dict[str, str]:
    """What was tested: the versions of servers and of the library."""
    try:
        found = results.read_test(outcome.folder).get("versions") or {}
    except BadArguments:
        return {}  # a run that was cut short before it knew
    return _tested(found, spec.lock_type.library)


def _tested(versions: Mapping[str, str], library: str = "") -> dict[str, str]:
    return {name: said for name, said in versions.items() if name in KINDS or name == library}


def rate_row(item: Item, outcomes: Sequence[Outcome], folder: Path) -> dict[str, Any]:
    """The suite's record of a rate, of the runs that are over. Without proof of its faults a run is
    not counted, and the rate is not as it should be."""
    assert isinstance(item.entry, TimedRun) and item.entry.rate is not None
    rate = item.entry.rate
    runs: list[dict[str, Any]] = []
    for spec, outcome in zip(item.specs, outcomes, strict=False):
        why = " ".join(_unproved(outcome))
        counts = {} if why else rate_counts.counts(outcome, rate.of)
        run = {"run": _relative(outcome.folder, folder), "seed": spec.seed, "counts": counts}
        runs.append(run | ({"why": why} if why else {}))
    missed = [run for run in runs if "why" in run]
    words = f"{len(missed)} of {len(runs)} runs could not be counted: " if missed else ""
    return _described(item, outcomes[0].folder, folder, _versions(item.spec, outcomes[0])) | {
        "rate": {
            "of": rate.of,
            "published": rate.published,
            "runs": runs,
            "shares": rate_counts.summed(run["counts"] for run in runs),
        },
        "as_expected": not missed,
        "why": words + (missed[0]["why"] if missed else ""),
    }


def cost_row(item: Item, measured: Path, costs: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The suite's record of what locks cost, measured in a folder with this in its bench.json: as
    expected if each takes longer than the first."""
    rows = [
        {
            "lock": row["lock"],
            "ms": row["phases"]["alone"].get("pair_p50"),
            "trips": sum(row["trips"].values()),
            "rate": row["phases"]["apart"].get("rate"),
        }
        for row in costs["locks"]
    ]
    assert isinstance(item.entry, Cost)
    base = rows[0]
    cheap = [row["lock"] for row in rows[1:] if (row["ms"] or 0) <= (base["ms"] or 0)]
    return _described(item, measured, folder, _tested(costs["versions"])) | {
        "cost": {"locks": rows, "published": item.entry.published},
        "as_expected": not cheap,
        "why": f"no slower than {base['lock']}: {', '.join(cheap)}" if cheap else "",
    }


def _relative(run: Path, folder: Path) -> str:
    return os.path.relpath(run, folder)


def _why(item: Item, outcome: Outcome) -> str:
    """Describe what differs from the expectation; first, whether the schedule ran at all."""
    reasons = _unproved(outcome)
    reasons += [
        f"{name} is {outcome.verdicts[name].valid}, {valid} was expected: "
        f"{outcome.verdicts[name].summary}"
        for name, valid in item.expected.items()
        if outcome.verdicts[name].valid != valid
    ]
    return " ".join(reasons or _uncaused(item, outcome))


def _unproved(outcome: Outcome) -> list[str]:
    """Why nothing follows from a run: it did not come about, or its faults have no proof."""
    return [
        f"{name}: {outcome.verdicts[name].summary}"
        for name in ("run", "faults")
        if name in outcome.verdicts and outcome.verdicts[name].valid is not True
    ]


def _uncaused(item: Item, outcome: Outcome) -> list[str]:
    """What names another cause than the scenario's, a sentence each."""
    return unnamed(item.scenario, outcome.verdicts) if item.scenario else []


CarryOut = Callable[[Item, Spec], Outcome]
Measure = Callable[[Item], tuple[Path, Mapping[str, Any]]]
"""Measures what the locks of an entry cost, and returns the folder and its bench.json."""
Say = Callable[[dict[str, Any], Outcome | None], None]


def run(
    suite: str,
    chosen: list[Item],
    carry_out: CarryOut,
    measure: Measure,
    say: Say,
) -> tuple[Path, list[dict[str, Any]]]:
    """Carry out a suite's runs; return its folder and its rows.

    suite.json is written after every run, and the report at the end, so that a suite that is
    interrupted leaves what it found.
    """
    folder = results.create(f"suite-{suite}")
    rows: list[dict[str, Any]] = []
    with locked(folder):
        try:
            for item in chosen:
                done = rows
                for made in _rows(item, carry_out, measure, folder):
                    rows = [*done, made[0]]
                    results.write(folder / "suite.json", rows)
                say(*made)
        finally:
            if rows:
                report.render(folder)
    return folder, rows


def _rows(
    item: Item,
    carry_out: CarryOut,
    measure: Measure,
    folder: Path,
) -> Iterator[tuple[dict[str, Any], Outcome | None]]:
    """The row of an entry after each of its runs, with the run."""
    if isinstance(item.entry, Cost):
        yield cost_row(item, *measure(item), folder), None
        return
    outcomes: list[Outcome] = []
    for spec in item.specs:
        outcomes.append(carry_out(item, spec))
        if isinstance(item.entry, TimedRun) and item.entry.rate is not None:
            yield rate_row(item, outcomes, folder), outcomes[-1]
        else:
            yield row(item, outcomes[-1], folder), outcomes[-1]


def tally(rows: list[dict[str, Any]]) -> str:
    """How many runs ended as expected, and how many rates were counted, in a sentence."""
    expected = [row for row in rows if row["expected"] or "cost" in row]
    good = sum(1 for row in expected if row["as_expected"])
    rates = [row["rate"] for row in rows if "rate" in row]
    words = [f"{good} of {len(expected)} came out as published."] if expected or not rates else []
    if rates:
        runs = sum(len(rate["runs"]) for rate in rates)
        said = f"{len(rates)} rates were" if len(rates) > 1 else "One rate was"
        words.append(f"{said} counted, over {runs} runs.")
    return " ".join(words)


def summary(name: str, seed: int, rows: list[dict[str, Any]]) -> str:
    """A suite in Markdown: what was not as expected, and what runs without expectation found."""
    lines = [f"### {name}, seed {seed}: {tally(rows)}", ""]
    lines += [
        f"- **{row['scenario']}**, guard {row['guard']}: {row['why']}"
        for row in rows
        if not row["as_expected"]
    ]
    for row in rows:
        if "rate" in row:
            lines += [f"- {row['scenario']}: {words}" for words in report.shares(row["rate"])]
        elif not row["expected"] and "cost" not in row:
            broken = [checker for checker, valid in row["observed"].items() if valid is not True]
            found = ", ".join(broken) or "nothing broken"
            lines.append(f"- {row['scenario']}, guard {row['guard']} (a finding): {found}")
    return "\n".join([*lines, "", ""])
