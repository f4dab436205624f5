"""The track record: every defect that was found in software which people use, shown once more.

The defects are data (workloads/scenarios/defects.py). Each way to show one is played once more and
comes to a row: `seen`, `not seen`, or `not played` where the run did not come about, so that it
says nothing. A schedule of which a step came out otherwise is played again, up to TRIES times: a
busy machine does that, and software that was mended does it each time.

What is kept (docs/track-record.json) has a row for each way: those that were played now, and of the
others the rows that it had.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fencepost.checker.history.history import read
from fencepost.harness.campaigns import suite
from fencepost.harness.cluster import libraries
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.hunting import hunts
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.results import results
from fencepost.harness.spec.spec import Spec
from fencepost.harness.spec.validation import validate
from fencepost.strictjson import decode
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.defects import DEFECTS, ByHunt, ByLeases, Defect, InSuite, Way
from fencepost.workloads.scenarios.scenario import Scenario

FILE = "track-record.json"
SEEN, NOT_SEEN, NOT_PLAYED = "seen", "not seen", "not played"
TRIES = 3
_HUNT_BUDGET = "120s"
_COUNT_EVERY_S = 0.25
# The distributions whose code a hunt runs.
_PACKAGES = {"redis-py": "redis"}

Play = Callable[[Spec, Scenario | None], Outcome]
"""Carries out a test on the cluster."""


@dataclass(frozen=True)
class Entry:
    """A defect and one of the ways to show it; `item` is the run that shows it, if it needs one."""

    defect: Defect
    way: Way
    command: str
    item: suite.Item | None
    spec: Spec | None

    @property
    def key(self) -> str:
        return f"{self.defect.name}/{self.way.where}"


def entries(only: Sequence[str], seed: int) -> list[Entry]:
    """What is to be played, in order: all of it, or the defects whose names begin so.

    Raises:
        BadArguments: no defect's name does.
    """
    for prefix in only:
        if not any(one.name.startswith(prefix) for one in DEFECTS):
            known = ", ".join(one.name for one in DEFECTS)
            raise BadArguments(f"there is no defect {prefix!r}; choose one of: {known}")
    chosen = [one for one in DEFECTS if not only or one.name.startswith(tuple(only))]
    return [
        _entry(one, way, command, seed)
        for one in chosen
        for way, command in zip(one.ways, one.commands, strict=True)
    ]


def _entry(defect: Defect, way: Way, command: str, seed: int) -> Entry:
    match way:
        case InSuite(name, scenario):
            (item,) = [one for one in suite.items(name, seed) if one.name == scenario]
            return Entry(defect, way, command, item, item.spec)
        case ByLeases(lock):
            settings: dict[str, Any] = dict(way.settings)
            options = LOCKS[lock].read_options({})
            spec = Spec(f"leases-{lock}", lock, options, seed=seed, **settings)
            return Entry(defect, way, command, None, validate(spec))
    return Entry(defect, way, command, None, None)


def play(entry: Entry, folder: Path, cluster: Cluster | None, run: Play) -> dict[str, Any]:
    """Play one entry; its row. `cluster` is there where the entry has a test, which `run` carries
    out on it."""
    row: dict[str, Any] = {
        "key": entry.key,
        "defect": entry.defect.name,
        "software": entry.defect.software,
        "what": entry.defect.what,
        "issue": entry.defect.issue,
        "related": entry.defect.related,
        "where": entry.way.where,
        "command": entry.command,
        "versions": {},
    }
    try:
        row |= _played(entry, folder, cluster, run)
    except (Crashed, RemoteError, BadArguments) as error:
        row |= {"outcome": NOT_PLAYED, "said": str(error)}
    return row | {"date": datetime.now(UTC).date().isoformat()}


def _played(entry: Entry, folder: Path, cluster: Cluster | None, run: Play) -> dict[str, Any]:
    way = entry.way
    if isinstance(way, ByHunt):
        return _hunted(way, entry.command)
    assert entry.spec is not None and cluster is not None
    if isinstance(way, ByLeases):
        return _counted(way, entry.spec, cluster, run)
    assert entry.item is not None
    return _scripted(way, entry.item, folder, run)


def _scripted(way: InSuite, item: suite.Item, folder: Path, run: Play) -> dict[str, Any]:
    tries = 0
    while True:
        tries += 1
        outcome = run(item.spec, item.scenario)
        proved = outcome.verdicts["faults"].valid is True
        if tries == TRIES or (proved and "run" not in outcome.verdicts):
            break
    row = suite.row(item, outcome, folder)
    found = {"versions": _versions(outcome), "run": row["run"], "tries": tries}
    if not row["as_expected"]:
        return found | {"outcome": _otherwise(outcome), "said": row["why"]}
    if way.shows is None:
        wrong = [name for name, valid in item.expected.items() if valid is False]
        return found | {"outcome": SEEN, "said": outcome.verdicts[wrong[0]].summary}
    shown = way.shows(read(outcome.folder / "history.jsonl"))
    if not shown:
        return found | {"outcome": NOT_SEEN, "said": "the schedule came out, and nothing shows it"}
    return found | {"outcome": SEEN, "said": shown}


def _otherwise(outcome: Outcome) -> str:
    """Faults that were not proved say nothing of the software; a step that came out otherwise, each
    time, does: it is what happens where a defect is mended."""
    proved = outcome.verdicts["faults"].valid is True
    notes = outcome.results.get("run_notes") or []
    as_scheduled = all(note.startswith("The schedule was not carried out") for note in notes)
    return NOT_SEEN if proved and as_scheduled else NOT_PLAYED


def _hunted(way: ByHunt, command: str) -> dict[str, Any]:
    asked = hunts.described(
        way.lock, {}, {"seed": str(way.seed)}, faults=way.faults, until=way.until,
        budget=_HUNT_BUDGET,
    )  # fmt: skip
    tried, find = asked.carry_out()
    versions = {way.lock: _installed(way.lock)}
    if find is None:
        said = f"nothing was found in {tried.schedules:,} schedules"
        return {"versions": versions, "outcome": NOT_SEEN, "said": said}
    outcome, _ = asked.store(tried, find, command)
    found = {"versions": versions, "run": str(outcome.folder), "outcome": SEEN}
    verdict = outcome.verdicts[way.until]
    return found | {"said": verdict.evidence[0]["what"]}


def _installed(lock: str) -> str:
    """The version of the library that the simulation ran: the one of this Python."""
    try:
        return version(_PACKAGES.get(lock, lock))
    except PackageNotFoundError:
        return "not installed"


def _counted(way: ByLeases, spec: Spec, cluster: Cluster, run: Play) -> dict[str, Any]:
    with _leases(cluster, spec.servers[0]) as counts:
        outcome = run(spec, None)
    most = max(counts, default=0)
    found = {"versions": _versions(outcome), "run": str(outcome.folder)}
    if not counts:
        said = f"{spec.servers[0]} was never heard to say which leases it has"
        return found | {"outcome": NOT_PLAYED, "said": said}
    said = f"up to {most} leases at a time, for {spec.concurrency} clients and one lock"
    return found | {"outcome": SEEN if most > way.most else NOT_SEEN, "said": said}


@contextmanager
def _leases(cluster: Cluster, node: str) -> Iterator[list[int]]:
    """How many leases etcd has, again and again while the block lasts, as this server says."""
    counts: list[int] = []
    over = threading.Event()

    def count() -> None:
        while not over.wait(_COUNT_EVERY_S):
            try:
                said = cluster.remote(node).run(
                    ["etcdctl", "lease", "list", "--write-out", "json"], check=False
                )
                if said.code == 0:
                    counts.append(len(json.loads(said.out).get("leases") or ()))
            except (RemoteError, ValueError):
                continue  # it is not up yet, or not any more

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    try:
        yield counts
    finally:
        over.set()
        thread.join()


def _versions(outcome: Outcome) -> dict[str, str]:
    """Those of the servers and of the library, of all that test.json has."""
    test = results.read_test(outcome.folder)
    lock = LOCKS[test["lock"]["name"]]
    said = test.get("versions") or {}
    found = {name: said[name] for name in (lock.kind,) if name in said}
    if lock.library:
        found[lock.library] = libraries.version(lock.library)
    return found


def changed(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows whose outcome is no longer what it was."""
    return [row for row in rows if row["outcome"] == NOT_SEEN]


def create() -> Path:
    """A folder for what is played now."""
    return results.create("track-record")


def write(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write what was played so far; returns the file."""
    results.write(folder / FILE, list(rows))
    return folder / FILE


def keep(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Put rows into a file that is kept, in the place of those of the same keys. Rows of what was
    not played stay as they are; those of what does not exist any more go.

    Raises:
        BadArguments: what is there is no such file, or it cannot be written.
    """
    known = {row["key"]: row for row in _kept(path)}
    for row in rows:
        if row["outcome"] != NOT_PLAYED:
            before = known.get(row["key"], {}).get("last_seen", "")
            seen = row["date"] if row["outcome"] == SEEN else before
            known[row["key"]] = _without_run(row) | {"last_seen": seen}
    order = [f"{one.name}/{way.where}" for one in DEFECTS for way in one.ways]
    try:
        results.write(path, [known[key] for key in order if key in known])
    except OSError as error:
        raise BadArguments(f"{path} cannot be written: {error.strerror}") from error


def _without_run(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as it is kept: the run stays where it was made."""
    return {name: value for name, value in row.items() if name not in ("run", "tries")}


def _kept(path: Path) -> list[dict[str, Any]]:
    try:
        rows = decode(path.read_bytes())
        if not isinstance(rows, list) or not all(isinstance(r, dict) and "key" in r for r in rows):
            raise ValueError("it is no list of rows")
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise BadArguments(f"{path} cannot be added to ({error}): name another file") from error
    return rows


def must_be_kept(path: Path) -> None:
    """Raise BadArguments, before anything is played, if rows cannot be put into this file."""
    _kept(path)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise BadArguments(f"--keep {path}: its folder is not there, or cannot be written to")
