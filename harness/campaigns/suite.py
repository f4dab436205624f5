"""A suite: controls, scenarios against their published outcomes, rates, costs, random faults."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import msgspec

from fencepost.checker import leadership
from fencepost.checker.checkers import sound
from fencepost.checker.verdict import Valid
from fencepost.harness.campaigns import bench, costs, rate_counts
from fencepost.harness.campaigns.campaign import versions
from fencepost.harness.campaigns.costs import Costs
from fencepost.harness.campaigns.item import Item, around, test
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.execute.scripted import of_suite
from fencepost.harness.execute.stage import NOT_CARRIED_OUT
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.spec.make import make
from fencepost.harness.spec.spec import Spec, layout_of
from fencepost.harness.spec.validation import validate
from fencepost.nemesis.schedule import Scheduled, from_rows
from fencepost.workloads.scenarios.caused import unnamed
from fencepost.workloads.scenarios.registry import SUITES
from fencepost.workloads.scenarios.scenario import (
    LeaseOver,
    Pass,
    Scenario,
    TtlByClock,
    TtlOver,
    plain,
)
from fencepost.workloads.scenarios.suite import Cost, Entry, Rate, TimedRun

_KIND = "suites"
TRIES = 3
"""How often a scenario is tried whose steps do not end as scheduled: on a busy machine an answer
may miss a timeout of 50 ms."""


@dataclass(frozen=True)
class EntryRuns:
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
        """Return the faults of one of its runs; None where they are drawn from the seed."""
        if not isinstance(self.entry, TimedRun) or not self.entry.faults:
            return None
        return from_rows(list(self.entry.faults), layout_of(spec), spec.seed)

    @property
    def expected(self) -> Mapping[str, Valid]:
        if isinstance(self.entry, TimedRun) and self.entry.calm:
            return sound(self.spec.to_json())
        return {} if isinstance(self.entry, Cost) else self.entry.expected

    @property
    def rate(self) -> Rate | None:
        return self.entry.rate if isinstance(self.entry, TimedRun) else None

    @property
    def name(self) -> str:
        return self.entry.name


def entries(
    suite: str, seed: int, server: Mapping[str, str] | None = None, seeds: int | None = None
) -> list[EntryRuns]:
    """Return the entries of a suite, in order. `server`: versions of servers for runs that name
    none. `seeds`: how many seeds rates are counted over, in place of each one's own number."""
    found = SUITES[suite]
    return [_entry(suite, found.lock, entry, seed, server or {}, seeds) for entry in found.entries]


def must_begin(what: str, prefixes: Iterable[str], names: Collection[str]) -> None:
    """Raise BadArguments if no name begins with one of these prefixes."""
    for prefix in prefixes:
        if not any(name.startswith(prefix) for name in names):
            raise BadArguments(f"there is no {what} {prefix!r}; choose one of: {', '.join(names)}")


def _entry(
    suite: str, lock: str, entry: Entry, seed: int, server: Mapping[str, str], seeds: int | None
) -> EntryRuns:
    match entry:
        case Scenario():
            return _scripted(suite, lock, entry, seed, server)
        case TimedRun():
            return _timed(suite, lock, entry, seed, server, seeds)
    specs = (bench.spec_of(lock, seed) for lock in (bench.BASELINE, *entry.locks))
    return EntryRuns(tuple(replace(spec, server=dict(server)) for spec in specs), entry)


def _scripted(
    suite: str, lock: str, entry: Scenario, seed: int, server: Mapping[str, str]
) -> EntryRuns:
    name = f"{suite}-{entry.name}-{entry.guard}"
    versions = {**server, **entry.settings.get("server", {})}
    return EntryRuns((of_suite(name, lock, entry, seed, server=versions),), entry)


def _timed(
    suite: str, lock: str, entry: TimedRun, seed: int, server: Mapping[str, str], seeds: int | None
) -> EntryRuns:
    lock = entry.lock or lock
    versions = {**server, **entry.settings.get("server", {})}
    settings = {"guard": entry.guard, "seed": seed, **entry.settings, "server": versions}
    name = f"{suite}-{entry.name}-{entry.guard}"
    spec = make(lock, entry.options, settings, name=name)
    count = (seeds or entry.rate.seeds) if entry.rate else 1
    item = EntryRuns(tuple(replace(spec, seed=seed + n) for n in range(count)), entry)
    if faults := item.schedule(spec):
        asked = tuple(dict.fromkeys(fault.family for fault in faults))
        specs = (replace(one, nemesis=asked, scheduled=True) for one in item.specs)
        item = EntryRuns(tuple(specs), entry)
    validate(item.spec)
    return item


@dataclass(frozen=True)
class Plan:
    """A suite to run. `only`: the names of its entries; all if empty."""

    suite: str
    seed: int
    server: Mapping[str, str] = field(default_factory=dict)
    seeds: int | None = None
    only: tuple[str, ...] = ()
    kind: ClassVar[str] = "suite"

    @cached_property
    def entries(self) -> dict[str, EntryRuns]:
        every = entries(self.suite, self.seed, self.server, self.seeds)
        return {one.spec.name: one for one in every if not self.only or one.name in self.only}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def rows(self) -> list[dict[str, Any]]:
        return [_row(key, one) for key, one in self.entries.items()]

    def items(self, number: int) -> list[Item]:
        if number > 1:
            return []
        return [item for key, one in self.entries.items() for item in _items(key, one)]

    def line(self, item: Item, found: Any) -> dict[str, Any]:
        one = self.entries[item.row]
        if isinstance(found, Costs):
            return cost_line(one, found.stored)
        return rate_line(one, found) if one.rate else line(one, found)


def from_json(stored: Mapping[str, Any]) -> Plan:
    """Return a stored plan.

    Raises:
        BadArguments: its suite no longer exists.
    """
    if "seed" not in stored:
        raise BadArguments("neither its files nor its runs have the seed")
    found = msgspec.convert(stored, Plan)
    choose("suite", found.suite, SUITES)
    return found


def _row(key: str, one: EntryRuns) -> dict[str, Any]:
    row = {
        "key": key,
        "test": key,
        "scenario": one.name,
        "lock": one.spec.lock,
        "guard": one.spec.guard,
        "claim": one.entry.claim,
        "source": one.entry.source,
        "what": one.entry.what,
        "expected": dict(one.expected),
    }
    rate = {"of": one.rate.of, "published": one.rate.published} if one.rate else {}
    return row | ({"rate": rate} if rate else {})


def _items(key: str, one: EntryRuns) -> list[Item]:
    """Return the items of an entry. All items of suites share a cluster with their nodes."""
    if isinstance(one.entry, Cost):
        plan = costs.Plan(one.entry.locks, one.entry.time_s, one.spec.seed)
        total_s = sum(item.takes_s for item in plan.items(1))
        return [Item(key, costs.together, 1, plan.seed, _KIND, one.specs, asked=plan,
                     takes_s=total_s)]  # fmt: skip
    return [
        Item(key, test, number, spec.seed, _KIND, (spec,), one.scenario, one.schedule(spec),
             takes_s=takes_s(spec, one.scenario), tries=TRIES, settled=carried_out)
        for number, spec in enumerate(one.specs, 1)
    ]  # fmt: skip


def takes_s(spec: Spec, scenario: Scenario | None) -> float:
    """Estimate the time of a run, and of the steps in which its scenario waits (s)."""
    waits_s = 0.0
    for step in map(plain, scenario.steps if scenario else ()):
        match step:
            case Pass(seconds):
                waits_s += seconds
            case LeaseOver() | TtlOver() | TtlByClock():
                waits_s += spec.ttl_ms / 1000
    return spec.time_s + waits_s + around(spec.lock_type.kind)


def carried_out(outcome: Outcome) -> bool:
    """Return whether the steps of a run's scenario ended as scheduled."""
    notes = outcome.results.get("run_notes", ())
    return not any(note.startswith(NOT_CARRIED_OUT) for note in notes)


def line(one: EntryRuns, outcome: Outcome) -> dict[str, Any]:
    """Return the line of a run, compared with the expectation."""
    observed = {name: outcome.verdicts[name].valid for name in one.expected}
    if not one.expected:
        observed = {name: verdict.valid for name, verdict in outcome.verdicts.items()}
    as_expected = not one.expected or (
        not _unproved(outcome) and observed == dict(one.expected) and not _uncaused(one, outcome)
    )
    election = outcome.verdicts.get(leadership.CHECKER.name)
    return {
        "versions": _versions(one.spec, outcome),
        "observed": observed,
        **({"election": election.summary} if election else {}),
        "as_expected": as_expected,
        "carried_out": carried_out(outcome),
        "why": "" if as_expected else _why(one, outcome),
    }


def rate_line(one: EntryRuns, outcome: Outcome) -> dict[str, Any]:
    """Return the line of one run of a rate. A run does not count without proof of its faults, or if
    nothing shows what they did."""
    assert one.rate is not None
    why = " ".join(_unproved(outcome))
    counts = {} if why else rate_counts.counts(outcome, one.rate.of)
    if not (why or counts):
        why = "no client read the resource after the last fault"
    found = {"versions": _versions(one.spec, outcome), "counts": counts}
    return found | ({"why": why} if why else {})


def cost_line(one: EntryRuns, measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of measured costs: as expected if each lock is slower than the first."""
    assert isinstance(one.entry, Cost)
    rows = [
        {
            "lock": row["lock"],
            "ms": row["phases"]["alone"].get("pair_p50"),
            "trips": sum(row["trips"].values()),
            "rate": row["phases"]["apart"].get("rate"),
        }
        for row in measured["locks"]
    ]
    base = rows[0]
    cheap = [row["lock"] for row in rows[1:] if (row["ms"] or 0) <= (base["ms"] or 0)]
    return {
        "versions": _tested(measured["versions"]),
        "observed": {},
        "cost": {"locks": rows, "published": one.entry.published},
        "as_expected": not cheap,
        "why": f"no slower than {base['lock']}: {', '.join(cheap)}" if cheap else "",
    }


def _versions(spec: Spec, outcome: Outcome) -> dict[str, str]:
    return _tested(versions(outcome), spec.lock_type.library)


def _tested(known: Mapping[str, str], library: str = "") -> dict[str, str]:
    """Return the versions of servers and of the library."""
    return {name: said for name, said in known.items() if name in KINDS or name == library}


def _why(one: EntryRuns, outcome: Outcome) -> str:
    """Describe what differs from the expectation; first, whether the schedule ran at all."""
    reasons = _unproved(outcome)
    reasons += [
        f"{name} is {outcome.verdicts[name].valid}, {valid} was expected: "
        f"{outcome.verdicts[name].summary}"
        for name, valid in one.expected.items()
        if outcome.verdicts[name].valid != valid
    ]
    return " ".join(reasons or _uncaused(one, outcome))


def _unproved(outcome: Outcome) -> list[str]:
    """Return why a run gives no result: it crashed, or its faults have no proof."""
    return [
        f"{name}: {outcome.verdicts[name].summary}"
        for name in ("run", "faults")
        if name in outcome.verdicts and outcome.verdicts[name].valid is not True
    ]


def _uncaused(one: EntryRuns, outcome: Outcome) -> list[str]:
    """Return what points to another cause than the scenario's, a sentence each."""
    return unnamed(one.scenario, outcome.verdicts) if one.scenario else []
