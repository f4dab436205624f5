"""The runs of the results folder: listed, compared, and removed.

A folder is a run if it has a test.json or a history.jsonl. Multi-run folders such as suites and
matrices (batch_index.py) are listed with them. An unreadable folder is listed too, with the error
instead of its verdict.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fencepost.checker.verdict import Valid
from fencepost.harness import locked
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.results import batch_index, finder, results
from fencepost.harness.results.batch_index import Collected
from fencepost.report.words.questions import verdict
from fencepost.report.words.settings import settings

_STAMP = "%Y%m%dT%H%M%S.%fZ"
_HISTORY = "history.jsonl"
_NAMED = 3
"""Up to this number of locks, list each by name."""


@dataclass(frozen=True)
class Stored:
    """A run in the results folder, or a multi-run folder (`came`).

    `name` is TEST/TIME. `valid` is None if it was never judged. `live`: the run or its judgement is
    in progress. `problem` is the error if its files cannot be read.
    """

    name: str
    folder: Path
    test: Mapping[str, Any]
    results: Mapping[str, Any]
    live: bool
    problem: str = ""
    came: Collected | None = None

    @property
    def kind(self) -> str:
        """One of batch_index.KINDS."""
        if self.came is not None:
            return self.came.kind
        return batch_index.kind(self.folder) or ("hunt" if self.test.get("hunt") else "run")

    @property
    def lock(self) -> str:
        """The tested lock, or some of several."""
        if self.came is not None:
            some = self.came.locks
            return ", ".join(some) if len(some) <= _NAMED else f"{len(some)} locks"
        return str((self.test.get("lock") or {}).get("name") or "")

    @property
    def holds(self) -> int | None:
        """Its number of holds; None if unknown."""
        if self.came is not None:
            return self.came.holds
        found = (self.results.get("stats") or {}).get("holds")
        return None if found is None else int(found)

    @property
    def said(self) -> str:
        """Its result, in words."""
        if self.live:
            return "running" + (f", broken: {', '.join(self.broken)}" if self.broken else "")
        if self.problem:
            return self.problem
        if self.came is not None:
            return self.came.words
        if self.valid is None:
            return "not judged"
        word = {True: "valid", False: "INVALID", "unknown": "unknown"}[self.valid]
        return " ".join([word, ", ".join(self.broken)]).strip()

    @property
    def valid(self) -> Valid | None:
        if self.came is not None:
            return self.came.valid
        found = self.results.get("valid")
        return None if found is None else verdict(found)

    @property
    def broken(self) -> list[str]:
        """The checkers that found a violation."""
        checkers = self.results.get("checkers") or {}
        return [name for name, one in checkers.items() if one.get("valid") is False]

    @property
    def faults(self) -> list[str]:
        """The requested faults; of a scenario, the injected ones."""
        on = [str(one.get("family")) for one in self.results.get("faults") or ()]
        return list(self.test.get("nemesis") or dict.fromkeys(on))

    @property
    def began(self) -> datetime:
        return _began(self.folder)

    @property
    def size(self) -> int:
        """The size of all its files on disk, in bytes."""
        found = 0
        for place, _, names in os.walk(self.folder):
            for name in names:
                with suppress(OSError):  # a run in progress replaces files
                    found += os.lstat(f"{place}/{name}").st_size
        return found

    def to_json(self) -> dict[str, Any]:
        stats = self.results.get("stats") or {}
        return {
            "run": self.name,
            "kind": self.kind,
            "what": self.said,
            "folder": str(self.folder),
            "valid": self.valid,
            "broken": self.broken,
            "live": self.live,
            "lock": self.lock or None,
            "guard": self.test.get("guard"),
            "faults": self.faults,
            "seed": self.came.seed if self.came else self.test.get("seed"),
            "holds": self.holds,
            "duration_s": stats.get("duration_s"),
            "began": self.began.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "bytes": self.size,
            "problem": self.problem,
        }


def runs(test: str = "") -> Iterator[Stored]:
    """Yield the runs of the results folder, or of one test, newest first. Each is read when
    needed."""
    for folder in folders(test):
        yield entry_of(folder, name_of(folder))


def folders(test: str = "") -> list[Path]:
    """Return their folders, newest first."""
    return [path for path in candidates(test) if is_run(path)]


def candidates(test: str = "") -> list[Path]:
    """Return the folders that may be runs by their names, newest first."""
    found = results.root().glob(f"{test or '*'}/*Z")
    return sorted(found, key=lambda path: path.name, reverse=True)


def name_of(folder: Path) -> str:
    """TEST/TIME"""
    return f"{folder.parent.name}/{folder.name}"


def is_live(folder: Path) -> bool:
    """Return whether this run, or its judgement, is in progress."""
    history = folder / (results.SEGMENTS if results.is_long(folder) else _HISTORY)
    return locked.is_live(history) or locked.is_live(folder)


def entry_of(folder: Path, name: str) -> Stored:
    """Read the run in this folder. A folder that cannot be read has a `problem`, so that it does
    not take the list away. Any error but that of a file is a defect of fencepost."""
    try:
        return _read(folder, name)
    except OSError as error:
        return Stored(name, folder, {}, {}, False, f"{folder} cannot be read: {error.strerror}")


def _read(folder: Path, name: str) -> Stored:
    live, problems = is_live(folder), []
    if batch_index.kind(folder):
        came = None
        try:
            came = batch_index.read(folder)
        except BadArguments as error:
            problems.append(str(error))
        return Stored(name, folder, {}, {}, live, "; ".join(problems), came)
    files: dict[str, dict[str, Any]] = {"test.json": {}, "results.json": {}}
    for file, read in (("test.json", results.read_test), ("results.json", results.read)):
        if file == "results.json" and not (folder / file).exists():
            continue  # it was never judged
        try:
            files[file] = read(folder)
        except BadArguments as error:
            problems.append(str(error))
    return Stored(
        name, folder, files["test.json"], files["results.json"], live, "; ".join(problems)
    )


def find(name: str) -> Stored:
    """Find and read a run or a campaign. Raises BadArguments as finder.find does."""
    found = finder.find(name, finder.ANY)
    return entry_of(found, name_of(found))


def must_compare(one: Stored, other: Stored) -> None:
    """Raise BadArguments if these two cannot be compared."""
    sorts = [run.came.kind if run.came else "run" for run in (one, other)]
    if sorts[0] != sorts[1]:
        raise BadArguments(
            f"{one.name} is a {sorts[0]}, {other.name} a {sorts[1]}: compare two of the same kind"
        )
    for run in (one, other):
        if run.problem or run.live or (run.valid is None and run.came is None):
            raise BadArguments(f"{run.name} cannot be compared: {run.said}")


def beside(one: Stored, other: Stored) -> Iterator[tuple[str, Any, Any]]:
    """Return the differences of two runs: their settings, then verdicts and figures. Of two suites,
    matrices, campaigns or benches: the results of each of their runs."""
    if one.came is not None and other.came is not None:
        yield "in all", one.came.words, other.came.words
        for name, first, second in _pairs(one.came.lines, other.came.lines, "not in it"):
            yield name, str(first), str(second)
        return
    for label, mine, its in _pairs(dict(settings(one.test)), dict(settings(other.test)), None):
        if mine != its and label not in ("Started", "Checkers"):
            yield label, mine, its
    yield from _pairs(_verdicts(one), _verdicts(other), "not judged")
    yield from _pairs(_figures(one), _figures(other), 0)


def _pairs(
    one: Mapping[str, Any], other: Mapping[str, Any], missing: Any
) -> Iterator[tuple[str, Any, Any]]:
    """Yield each name with its values on both sides."""
    for name in dict.fromkeys([*one, *other]):
        yield name, one.get(name, missing), other.get(name, missing)


def alike(one: Stored, other: Stored) -> bool:
    """Return whether all checkers that judged both runs agree. Of suites, matrices and campaigns:
    whether all runs that are in both ended the same."""
    if one.came is not None and other.came is not None:
        first, second = one.came.lines, other.came.lines
        both = first.keys() & second.keys()
        return all(first[name].outcome == second[name].outcome for name in both)
    mine, its = _verdicts(one), _verdicts(other)
    return all(mine[name] == its[name] for name in mine.keys() & its.keys())


def _verdicts(run: Stored) -> dict[str, str]:
    checkers = run.results.get("checkers") or {}
    said = {"verdict": run.results.get("valid")}
    said |= {name: found.get("valid") for name, found in checkers.items()}
    return {name: str(verdict(one)).lower() for name, one in said.items()}


def _figures(run: Stored) -> dict[str, Any]:
    stats = run.results.get("stats") or {}
    took_s = stats.get("duration_s") or 0.0
    holds = stats.get("holds") or 0
    found: dict[str, Any] = {
        "injected faults": len(run.results.get("faults") or ()),
        "holds": holds,
        "holds a second": round(holds / took_s, 1) if took_s else 0.0,
        "duration (s)": round(took_s, 1),
    }
    for f, counts in (stats.get("by_f") or {}).items():
        found[f"{f}: {' / '.join(counts)}"] = " / ".join(map(str, counts.values()))
    return found


def words(value: Any) -> str:
    """Format a setting or a figure."""
    match value:
        case None:
            return ""
        case {"name": name, **more}:
            return ", ".join(filter(None, (str(name), words(more))))
        case dict():
            said = {key: words(one) for key, one in value.items()}
            return ", ".join(f"{key} {words}" for key, words in said.items() if words)
        case list():
            return ", ".join(str(one) for one in value)
        case bool():
            return "yes" if value else "no"
    return str(value)


def sized(size: int) -> str:
    """Format a number of bytes."""
    amount, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def remove(folders: Iterable[Path]) -> None:
    """Remove runs of the results folder, and point `latest` to the newest remaining ones.

    Raises:
        BadArguments: one of them is no run of the results folder, or in progress; none was removed.
        Crashed: one could not be removed.
    """
    root = results.root().resolve()
    places = [folder.resolve() for folder in folders]
    for place in places:
        if place.parent.parent != root or not is_run(place):
            raise BadArguments(
                f"{place} is not a run of the results folder {root}: nothing is removed"
            )
        if entry_of(place, place.name).live:
            raise BadArguments(
                f"{place} is still running: end it first (Ctrl-C); nothing is removed"
            )
    left = []
    for place in places:
        try:
            shutil.rmtree(place)
        except OSError as error:
            left.append(f"{error.filename or place} could not be removed: {error.strerror}")
    for test in {place.parent for place in places}:
        _point(test / "latest", [one for one in test.glob("*Z") if is_run(one)])
        with suppress(OSError):  # other runs of it exist
            test.rmdir()
    _point(root / "latest", [one for one in root.glob("*/*Z") if is_run(one)])
    if left:
        raise Crashed("; ".join(left))


def _point(link: Path, to: list[Path]) -> None:
    if not link.is_symlink() or link.exists():
        return  # its target still exists
    newest = max(to, key=lambda run: run.name, default=None)
    if newest is None:
        link.unlink()
    else:
        results.link(link, newest.relative_to(link.parent))


def is_run(path: Path) -> bool:
    """Return whether a folder is a run or a multi-run folder."""
    try:
        return path.is_dir() and not path.is_symlink() and _has_run(path)
    except OSError:
        return False


def _has_run(path: Path) -> bool:
    """Return whether it has the files of a run, or hides its files from this user."""
    same = os.access in os.supports_effective_ids
    return not os.access(path, os.R_OK | os.X_OK, effective_ids=same) or finder.is_one(
        path, finder.ANY
    )


def named(collection: Stored) -> Iterator[Path]:
    """Yield the folders of the runs that a multi-run folder names."""
    for run in collection.came.runs if collection.came else ():
        with suppress(ValueError, RuntimeError):  # it is not a path, or a loop of links
            yield (collection.folder / run).resolve()


def _began(folder: Path) -> datetime:
    """Return when it began: a run's folder has the time as its name; for others, use the folder's
    age."""
    try:
        return datetime.strptime(folder.name, _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(_modified_s(folder), UTC)


def _modified_s(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0
