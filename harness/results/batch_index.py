"""What stands for many runs in the results folder: suites, matrices, sweeps, track records,
campaigns of hunts, benches, nights.

Each has a folder as a run has, with a file of its own in the place of test.json. The runs
themselves lie beside it, and stay where it is removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fencepost.checker.verdict import Valid, count
from fencepost.harness.errors import BadArguments
from fencepost.report.pages import matrix, nightly, sweep
from fencepost.report.stored import ReportError
from fencepost.report.words.cells import STATES
from fencepost.report.words.findings import headline
from fencepost.report.words.questions import verdict
from fencepost.strictjson import decode


class Line(NamedTuple):
    """What came of one part: two that come out alike have the same `outcome`; `more` has figures,
    which differ each time."""

    outcome: str
    more: str = ""

    def __str__(self) -> str:
        return "; ".join(filter(None, self))


@dataclass(frozen=True)
class Collected:
    """`words`: what came of it. `valid`: True only where something was promised and kept; of a
    campaign that found nothing, of a matrix, a sweep and a bench it is None.

    `lines`: what came of each of its runs, cells, seeds or locks, by name. `runs`: the folders of
    its runs, relative to its own.
    """

    kind: str
    words: str
    valid: Valid | None
    locks: list[str]
    lines: Mapping[str, Line] = field(default_factory=dict)
    seed: int | None = None
    holds: int | None = None
    runs: list[str] = field(default_factory=list)


def kind(folder: Path) -> str:
    """What this folder is, one of KINDS that stands for many; '' for any other."""
    return next((name for name, (file, _) in _KINDS.items() if (folder / file).is_file()), "")


def read(folder: Path) -> Collected | None:
    """What is in this folder; None where it is none of these.

    Raises:
        BadArguments: its file cannot be read, or is not what fencepost writes.
    """
    if not (name := kind(folder)):
        return None
    file, reader = _KINDS[name]
    try:
        return reader(folder)
    except OSError as error:
        raise BadArguments(f"{folder / file} cannot be read: {error.strerror}") from error
    except (ReportError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadArguments(f"{folder / file} cannot be used: {error}") from error


class _One(msgspec.Struct):
    run: str = ""


class _Rate(msgspec.Struct):
    runs: list[_One]


class _Entry(msgspec.Struct):
    """An entry of a suite, as suite.json has it."""

    test: str
    run: str = ""
    lock: str = ""
    expected: dict[str, Any] = {}
    observed: dict[str, Any] = {}
    as_expected: bool = False
    why: str = ""
    rate: _Rate | None = None
    cost: dict[str, Any] | None = None


def _suite(folder: Path) -> Collected:
    rows = msgspec.convert(decode((folder / "suite.json").read_bytes()), list[_Entry])
    expected = [row for row in rows if row.expected]
    good = sum(row.as_expected for row in expected)
    lines = {}
    for row in rows:
        if row.rate is not None or row.cost is not None:
            missed = Line("NOT as it should be", row.why)
            lines[row.test] = Line("measured") if row.as_expected else missed
            continue
        broken = [name for name, valid in row.observed.items() if valid is False]
        unknown = [name for name, valid in row.observed.items() if verdict(valid) == "unknown"]
        said = "as published" if row.as_expected else "NOT as published"
        words = [said if row.expected else "a finding"]
        words += [f"broken: {', '.join(broken)}"] * bool(broken)
        words += [f"unknown: {', '.join(unknown)}"] * bool(unknown)
        lines[row.test] = Line("; ".join(words))
    measured = [row for row in rows if row.rate is not None or row.cost is not None]
    wrong = sum(not row.as_expected for row in measured)
    words = [f"{good} of {len(expected)} as published"] if expected or not measured else []
    words += [f"{len(measured) - wrong} measured"] * (len(measured) > wrong)
    words += [f"{wrong} not measured as it should be"] * bool(wrong)
    return Collected(
        "suite",
        ", ".join(words),
        good == len(expected) and not wrong if expected or wrong else None,
        list(dict.fromkeys(row.lock for row in rows if row.lock)),
        lines,
        runs=[one.run for row in rows for one in (row.rate.runs if row.rate else [row]) if one.run],
    )


def _matrix(folder: Path) -> Collected:
    stored = matrix.read(folder)
    rows, columns = stored["cells"], stored["plan"].get("columns", {})
    lines = {
        f"{row['lock']}, {matrix.title(row['fault'], columns)}, guard {row['guard']}": _cell(row)
        for row in rows
    }
    return Collected(
        "matrix",
        headline(rows),
        None,
        list(dict.fromkeys(str(row["lock"]) for row in rows)),
        lines,
        seed=int(stored["plan"]["seed"]),
        holds=sum(row["sum"]["holds"] for row in rows),
        runs=[str(run["run"]) for row in rows for run in row["runs"] if run.get("run")],
    )


def _sweep(folder: Path) -> Collected:
    stored = sweep.read(folder)
    plan, rows = stored["plan"], stored["cells"]
    lines = {sweep.title((plan["x"], plan["y"]), row): _cell(row) for row in rows}
    return Collected(
        "sweep",
        sweep.headline(stored),
        None,
        [str(plan["lock"])],
        lines,
        seed=int(plan["seed"]),
        holds=sum(row["sum"]["holds"] for row in rows),
        runs=[str(run["run"]) for row in rows for run in row["runs"] if run.get("run")],
    )


def _cell(row: Mapping[str, Any]) -> Line:
    total = row["sum"]
    return Line(", ".join(STATES[mark].word for mark in total["marks"]), total["words"])


class _Shown(msgspec.Struct):
    key: str
    outcome: str
    said: str = ""
    run: str = ""


def _record(folder: Path) -> Collected:
    rows = msgspec.convert(decode((folder / "track-record.json").read_bytes()), list[_Shown])
    counts = Counter(row.outcome for row in rows)
    came = ", ".join(f"{many} {outcome}" for outcome, many in counts.items())
    return Collected(
        "track-record",
        f"{count(len(rows), 'defect')}: {came}" if rows else "nothing was played yet",
        None,
        [],
        {row.key: Line(row.outcome, row.said) for row in rows},
        runs=[row.run for row in rows if row.run],
    )


class _Asked(msgspec.Struct):
    lock: str
    seeds: list[int]


class _Seed(msgspec.Struct):
    seed: int
    schedules: int = 0
    broken: list[str] = []
    strikes: int = 0
    failure: str = ""


def _campaign(folder: Path) -> Collected:
    asked = msgspec.convert(decode((folder / "campaign.json").read_bytes()), _Asked)
    done: dict[int, _Seed] = {}
    if (folder / "seeds.jsonl").is_file():
        # A last line without its end was being written when the campaign was killed.
        for line in (folder / "seeds.jsonl").read_bytes().split(b"\n")[:-1]:
            one = msgspec.convert(decode(line), _Seed)
            done[one.seed] = one
    found = sum(bool(one.broken) for one in done.values())
    left = len(asked.seeds) - len(done)
    came = f"broken from {found}" if found else "nothing found from any"
    words = f"{came} of {count(len(done), 'seed')}" if done else "no seed is done"
    if left and done:
        words += f", {left} left"
    lines = {f"seed {number}": _hunted(done.get(number)) for number in asked.seeds}
    first = min(asked.seeds, default=None)
    return Collected("campaign", words, False if found else None, [asked.lock], lines, first)


def _hunted(one: _Seed | None) -> Line:
    if one is None:
        return Line("not done")
    if one.failure:
        return Line(one.failure)
    tried = f"{one.schedules:,} schedules"
    if not one.broken:
        return Line("nothing found", tried)
    return Line(f"broken: {', '.join(one.broken)}", f"{count(one.strikes, 'strike')}, {tried}")


class _Part(msgspec.Struct):
    key: str
    marks: list[str] = []
    crashed: bool = False
    said: str = ""
    run: str = ""
    state: str = ""
    holds: int | None = None
    known: dict[str, Any] = {}


class _Parts(msgspec.Struct):
    seed: int
    entries: list[_Part]


def _night(folder: Path) -> Collected:
    content = decode((folder / "night.json").read_bytes())
    stored = msgspec.convert(content, _Parts)
    rows = stored.entries
    changed = any(row.state == "changed" for row in rows)
    unsure = any(row.state in ("unknown", "crashed") for row in rows)
    runs = [run for row in rows for run in (row.run, str(row.known.get("run", "")))]
    return Collected(
        "night",
        nightly.headline(content),
        None if not rows else False if changed else "unknown" if unsure else True,
        [],
        # What did not fit is in no night, so that it does not differ from one in which it did.
        {row.key: Line("; ".join(row.marks) or "crashed", row.said)
         for row in rows if row.marks or row.crashed},
        stored.seed,
        sum(row.holds or 0 for row in rows) or None,
        [f"../../{run}" for run in runs if run and not run.startswith("/")],
    )  # fmt: skip


class _Cost(msgspec.Struct):
    lock: str
    phases: dict[str, dict[str, float]]


class _Bench(msgspec.Struct):
    locks: list[_Cost]


def _bench(folder: Path) -> Collected:
    stored = msgspec.convert(decode((folder / "bench.json").read_bytes()), _Bench)
    lines = {one.lock: _costs(one.phases.get("alone") or {}) for one in stored.locks}
    words = f"the costs of {count(len(lines), 'lock')}"
    return Collected("bench", words, None, list(lines), lines)


def _costs(alone: Mapping[str, float]) -> Line:
    if "acquire_p50" not in alone:
        return Line("not measured")
    figures = f"acquire {alone['acquire_p50']:.3g} ms, {alone['rate']:,.0f} pairs a second, alone"
    return Line("measured", figures)


_KINDS: dict[str, tuple[str, Callable[[Path], Collected]]] = {
    "suite": ("suite.json", _suite),
    "matrix": ("matrix.json", _matrix),
    "sweep": ("sweep.json", _sweep),
    "track-record": ("track-record.json", _record),
    "campaign": ("campaign.json", _campaign),
    "bench": ("bench.json", _bench),
    "night": ("night.json", _night),
}
KINDS = ("run", "hunt", *_KINDS)
"""Everything that the results folder has, by name."""
