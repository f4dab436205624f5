"""Known defects of third-party software, reproduced (`fencepost track-record`).

The defects are data (workloads/scenarios/defects.py). Each reproduction is run and gives a row:
`seen`, `not seen`, or `not played` if the run crashed and so gives no result. If a step of its
schedule ends differently, it is retried, up to TRIES times: on a busy machine that happens by
chance, with fixed software it happens each time.

The kept file (docs/track-record.json) has a row for each reproduction: new rows for those that ran,
the old ones for the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fencepost.checker.history.history import read
from fencepost.harness.campaigns import kept, suite
from fencepost.harness.campaigns.item import Item, Watcher, test
from fencepost.harness.cluster import libraries
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.execute.periodic import now_and_then
from fencepost.harness.hunting import hunts
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.results import results
from fencepost.harness.spec.make import make
from fencepost.harness.spec.spec import Spec
from fencepost.report.known_defects import NOT_PLAYED
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.defects import DEFECTS, ByLeases, Defect, InSuite, Way

SEEN, NOT_SEEN = "seen", "not seen"
TRIES = 3
_KIND = "known defects"
_OF_A_RUN = ("run", "tries", "row", "number", "seed", "crashed")
_MOST_LEASES = "most_leases"
_HUNT_BUDGET = "120s"
_COUNT_EVERY_S = 0.25


@dataclass(frozen=True)
class Entry:
    """A defect and one way to reproduce it; `shown` is the suite's entry that does, if one
    exists."""

    defect: Defect
    way: Way
    command: str
    item: Item
    shown: suite.EntryRuns | None = None

    @property
    def key(self) -> str:
        return f"{self.defect.name}/{self.way.where}"


@dataclass(frozen=True)
class Plan:
    """The known defects to reproduce. `only`: prefixes of their names, all if empty; `simulated`:
    only those that need no servers."""

    seed: int
    only: tuple[str, ...] = ()
    simulated: bool = False
    kind: ClassVar[str] = "track-record"

    @cached_property
    def entries(self) -> dict[str, Entry]:
        found = entries(self.only, self.seed)
        # Simulations come first: they have finished before the nodes are up.
        found.sort(key=lambda one: bool(one.item.specs))
        return {one.key: one for one in found if not (self.simulated and one.item.specs)}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "key": one.key,
                "defect": one.defect.name,
                "software": one.defect.software,
                "what": one.defect.what,
                "issue": one.defect.issue,
                "related": one.defect.related,
                "where": one.way.where,
                "command": one.command,
            }
            for one in self.entries.values()
        ]

    def items(self, number: int) -> list[Item]:
        return [one.item for one in self.entries.values()] if number == 1 else []

    def line(self, item: Item, found: Any) -> dict[str, Any]:
        """Return the outcome, the reason (`said`), and the tested versions."""
        one = self.entries[item.row]
        if isinstance(found, Hunted):
            line = {"versions": found.versions, "outcome": found.outcome, "said": found.said}
        elif isinstance(one.way, ByLeases):
            line = _counted(one.way, item.spec, found)
        else:
            line = _scripted(one, found)
        return line | {"date": datetime.now(UTC).date().isoformat()}


def from_json(stored: Mapping[str, Any]) -> Plan:
    """Return a stored plan. Raise BadArguments if it lacks the seed."""
    if "seed" not in stored:
        raise BadArguments("neither its files nor its runs have the seed")
    return msgspec.convert(stored, Plan)


def entries(only: Sequence[str], seed: int) -> list[Entry]:
    """Return the reproductions, in order: all, or those of defects whose names begin with a prefix.

    Raises:
        BadArguments: no defect has such a name.
    """
    suite.must_begin("defect", only, [one.name for one in DEFECTS])
    chosen = [one for one in DEFECTS if not only or one.name.startswith(tuple(only))]
    return [
        _entry(one, way, command, seed)
        for one in chosen
        for way, command in zip(one.ways, one.commands, strict=True)
    ]


def _entry(defect: Defect, way: Way, command: str, seed: int) -> Entry:
    key = f"{defect.name}/{way.where}"
    match way:
        case InSuite(name, scenario):
            (shown,) = [one for one in suite.entries(name, seed) if one.name == scenario]
            item = Item(
                key, test, 1, seed, _KIND, shown.specs, shown.scenario, shown.schedule(shown.spec),
                title=defect.name, takes_s=suite.takes_s(shown.spec, shown.scenario), tries=TRIES,
                settled=_ran_as_scheduled,
            )  # fmt: skip
            return Entry(defect, way, command, item, shown)
        case ByLeases(lock):
            spec = make(lock, {}, {"seed": seed, **way.settings}, name=f"leases-{lock}")
            item = Item(key, count_leases, 1, seed, _KIND, (spec,), title=defect.name,
                        takes_s=suite.takes_s(spec, None))  # fmt: skip
            return Entry(defect, way, command, item)
    return Entry(defect, way, command, Item(key, hunt, 1, seed, asked=(way, command)))


def _ran_as_scheduled(outcome: Outcome) -> bool:
    """Return whether a schedule ran to its end, with proof of its faults."""
    return outcome.verdicts["faults"].valid is True and "run" not in outcome.verdicts


def _scripted(one: Entry, outcome: Outcome) -> dict[str, Any]:
    assert one.shown is not None and isinstance(one.way, InSuite)
    found = suite.line(one.shown, outcome)
    line = {"versions": _versions(outcome)}
    if not found["as_expected"]:
        return line | {"outcome": _otherwise(outcome), "said": found["why"]}
    if one.way.shows is None:
        wrong = [name for name, valid in one.shown.expected.items() if valid is False]
        return line | {"outcome": SEEN, "said": outcome.verdicts[wrong[0]].summary}
    shown = one.way.shows(read(outcome.folder / "history.jsonl"))
    if not shown:
        return line | {"outcome": NOT_SEEN, "said": "the schedule ran without showing the defect"}
    return line | {"outcome": SEEN, "said": shown}


def _otherwise(outcome: Outcome) -> str:
    """Unproved faults say nothing about the software. A step that ends differently each time does:
    a fixed defect looks like that."""
    proved = outcome.verdicts["faults"].valid is True
    notes = outcome.results.get("run_notes") or []
    as_scheduled = all(note.startswith("The schedule was not carried out") for note in notes)
    return NOT_SEEN if proved and as_scheduled else NOT_PLAYED


@dataclass(frozen=True)
class Hunted:
    """The result of a hunt; `folder` is None if it found no counterexample."""

    outcome: str
    said: str
    versions: dict[str, str]
    folder: Path | None = None


def hunt(item: Item, cluster: Cluster | None, watcher: Watcher) -> Hunted:
    """Hunt the library's own code, on simulated servers.

    Raises:
        Crashed: the library cannot be simulated here, for example because it is not installed.
    """
    way, command = item.asked
    try:
        asked = hunts.described(
            way.lock, {}, {"seed": str(way.seed)}, faults=way.faults, goal=way.goal,
            budget=_HUNT_BUDGET,
        )  # fmt: skip
        tried, find = asked.carry_out()
    except BadArguments as error:
        raise Crashed(str(error)) from error
    versions = {way.lock: _installed(way.lock)}
    if find is None:
        return Hunted(NOT_SEEN, f"no counterexample in {tried.schedules:,} schedules", versions)
    outcome, _ = asked.store(tried, find, command)
    said = outcome.verdicts[way.goal].evidence[0]["what"]
    return Hunted(SEEN, said, versions, outcome.folder)


def _installed(lock: str) -> str:
    """Return the version of the library that the simulation ran: the one in this Python."""
    try:
        return version(LOCKS[lock].distribution or lock)
    except PackageNotFoundError:
        return "not installed"


def count_leases(item: Item, cluster: Cluster | None, watcher: Watcher) -> Outcome:
    """Run a test, and poll the number of etcd's leases. The results have the maximum; None if etcd
    never answered."""
    assert cluster is not None
    with _leases(cluster, item.spec.servers[0]) as counts:
        outcome = test(item, cluster, watcher)
    most = max(counts, default=None)
    return replace(outcome, results={**outcome.results, _MOST_LEASES: most})


def _counted(way: ByLeases, spec: Spec, outcome: Outcome) -> dict[str, Any]:
    line, most = {"versions": _versions(outcome)}, outcome.results[_MOST_LEASES]
    if most is None:
        said = f"{spec.servers[0]} never reported its leases"
        return line | {"outcome": NOT_PLAYED, "said": said}
    said = f"up to {most} leases at a time, for {spec.concurrency} clients and one lock"
    return line | {"outcome": SEEN if most > way.most else NOT_SEEN, "said": said}


@contextmanager
def _leases(cluster: Cluster, node: str) -> Iterator[list[int]]:
    """Poll the number of leases of this etcd server within the block."""
    counts: list[int] = []

    def count() -> None:
        # Not up yet, or already down.
        with suppress(RemoteError, ValueError):
            said = cluster.remote(node).run(
                ["etcdctl", "lease", "list", "--write-out", "json"], check=False
            )
            if said.code == 0:
                counts.append(len(json.loads(said.out).get("leases") or ()))

    with now_and_then(count, every_s=_COUNT_EVERY_S):
        yield counts


def _versions(outcome: Outcome) -> dict[str, str]:
    """Return the versions of the servers and of the library, from all in test.json."""
    test = results.read_test(outcome.folder)
    lock = LOCKS[test["lock"]["name"]]
    said = test.get("versions") or {}
    found = {name: said[name] for name in (lock.kind,) if name in said}
    if lock.library:
        found[lock.library] = libraries.version(lock.library)
    return found


def keep(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Merge rows into a kept file, replacing those with the same keys. Rows that were not played
    keep their old content; rows of reproductions that no longer exist are removed.

    Raises:
        BadArguments: the file has another format, or cannot be written.
    """
    known = {row["key"]: row for row in kept.read(path, "key")}
    for row in rows:
        if row["outcome"] != NOT_PLAYED:
            before = known.get(row["key"], {}).get("last_seen", "")
            seen = row["date"] if row["outcome"] == SEEN else before
            known[row["key"]] = _without_run(row) | {"last_seen": seen}
    order = [f"{one.name}/{way.where}" for one in DEFECTS for way in one.ways]
    kept.write(path, [known[key] for key in order if key in known])


def _without_run(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as it is kept: without its run, which stays on this machine."""
    return {name: value for name, value in row.items() if name not in _OF_A_RUN}
