"""Summaries of campaigns and nightly runs, in words and row by row, for lists and for a CI system.

To a CI system, an entry of a suite fails if its outcome is not as expected. A cell or a hunt, which
has no expectation, fails if a promise is broken. A crashed run is an error, an unknown one is
skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fencepost import plainfile
from fencepost.checker.verdict import Valid, count
from fencepost.report import campaign_files, defect_scores, known_defects, night_file
from fencepost.report.pages import matrix, nightly, suite, sweep
from fencepost.report.stored import ReportError
from fencepost.report.words.cells import STATES
from fencepost.report.words.findings import headline
from fencepost.report.words.inert import inert
from fencepost.report.words.questions import verdict

State = Literal["passed", "failure", "error", "skipped"]


@dataclass(frozen=True)
class Line:
    """The result of one row. Equal results have the same `outcome`; `more` has figures or reasons,
    which differ each time.

    To a CI system it is a test case in this `state`. `group` and `test` name the case, `kind` is
    the type of the failure, `text` has the details. `noted`: a summary lists it although it has
    passed.
    """

    outcome: str
    more: str = ""
    state: State = "passed"
    kind: str = ""
    group: str = ""
    test: str = ""
    text: str = ""
    noted: bool = False

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.outcome, self.more)))


@dataclass(frozen=True)
class Collected:
    """The summary of a folder, in one sentence (`words`). `valid` is True only if something was
    promised and kept; it is None for a campaign without a counterexample, a matrix, a sweep and a
    bench.

    `lines`: the results of its entries, cells, seeds or locks, by name. `runs`: the folders of its
    runs, relative to its own folder. `name`: the suite, or its kind.
    """

    kind: str
    words: str
    valid: Valid | None
    locks: list[str]
    lines: Mapping[str, Line] = field(default_factory=dict)
    seed: int | None = None
    holds: int | None = None
    runs: list[str] = field(default_factory=list)
    name: str = ""

    def any(self, *states: State) -> bool:
        return any(line.state in states for line in self.lines.values())


def kind(folder: Path) -> str:
    """Return the kind of this folder, one of KINDS, or '' if it is another."""
    return "night" if plainfile.exists(folder / night_file.FILE) else campaign_files.kind(folder)


def read(folder: Path) -> Collected:
    """Summarize this folder, whose kind is one of KINDS.

    Raises:
        ReportError, OSError: its files cannot be read.
        LookupError: they lack a row or a field.
    """
    return KINDS[kind(folder)](folder)


def _suite(folder: Path) -> Collected:
    rows = suite.read(folder)
    expected = [row for row in rows if row.get("expected")]
    good = sum(bool(row.get("as_expected")) for row in expected)
    missed = sum(not suite.carried_out(row) for row in expected)
    measured = [row for row in rows if "rate" in row or "cost" in row]
    wrong = sum(not row.get("as_expected") for row in measured)
    words = [f"{good} of {len(expected)} as published"] if expected or not measured else []
    words += [f"{missed} not carried out"] * bool(missed)
    words += [f"{len(measured) - wrong} measured"] * (len(measured) > wrong)
    words += [f"{wrong} not measured as it should be"] * bool(wrong)
    runs = [run for row in rows for run in (row["rate"]["runs"] if "rate" in row else [row])]
    return Collected(
        "suite",
        ", ".join(words),
        _suite_verdict(len(expected), good, missed, wrong),
        list(dict.fromkeys(str(row["lock"]) for row in rows if row.get("lock"))),
        {str(row["test"]): entry(row) for row in rows},
        runs=[str(run["run"]) for run in runs if run.get("run")],
        name=folder.resolve().parent.name,
    )


def _suite_verdict(expected: int, good: int, missed: int, wrong: int) -> Valid | None:
    """Return the verdict on a suite from the numbers of its entries: None without any to judge."""
    if not expected and not wrong:
        return None
    if good + missed < expected or wrong:
        return False
    return "unknown" if missed else True


def entry(row: Mapping[str, Any]) -> Line:
    """Return the result of an entry of a suite. An entry without an expectation passes."""
    observed, good, why = (
        row.get("observed") or {},
        bool(row.get("as_expected")),
        str(row.get("why", "")),
    )
    played = suite.carried_out(row)
    counted = suite.shares(row["rate"]) if "rate" in row else []
    broken = [name for name, valid in observed.items() if valid is False]
    unknown = [name for name, valid in observed.items() if verdict(valid) == "unknown"]
    if "rate" in row or "cost" in row:
        words = ["measured" if good else "NOT as it should be"]
    else:
        said = "as published" if good else "NOT as published" if played else "not carried out"
        words = [said if row.get("expected") else "a finding"]
        words += [f"broken: {', '.join(broken)}"] * bool(broken)
        words += [f"unknown: {', '.join(unknown)}"] * bool(unknown)
    kind = "crashed" if row.get("crashed") else "run" if why.startswith("run: ") else ""
    verdicts = "\n".join(counted) or ", ".join(f"{name}: {one}" for name, one in observed.items())
    return Line(
        "; ".join(words),
        " ".join(filter(None, [why, *counted])),
        "skipped" if not played else "error" if kind else "passed" if good else "failure",
        (kind or "not as published") if played else "not carried out",
        row.get("scenario", ""),
        f"guard {row['guard']}" if "guard" in row else "",
        "\n".join([row.get("what", ""), why, verdicts, f"run: {row.get('run', '')}"]),
        noted=not row.get("expected") and "cost" not in row,
    )


def _matrix(folder: Path) -> Collected:
    stored = matrix.read(folder)
    rows, columns = stored["cells"], stored["plan"].get("columns", {})
    titles = [matrix.title(row["fault"], columns) for row in rows]
    names = [
        (row["lock"], f"{title}, guard {row['guard']}")
        for row, title in zip(rows, titles, strict=True)
    ]
    locks = list(dict.fromkeys(str(row["lock"]) for row in rows))
    return _cells("matrix", headline(rows), locks, stored, dict(zip(names, rows, strict=True)))


def _sweep(folder: Path) -> Collected:
    stored = sweep.read(folder)
    plan, lock = stored["plan"], str(stored["plan"]["lock"])
    rows = {("", sweep.title((plan["x"], plan["y"]), row)): row for row in stored["cells"]}
    return _cells("sweep", sweep.headline(stored), [lock], stored, rows)


def _cells(
    kind: str,
    words: str,
    locks: list[str],
    stored: Mapping[str, Any],
    rows: Mapping[tuple[str, str], Mapping[str, Any]],
) -> Collected:
    return Collected(
        kind,
        words,
        None,
        locks,
        {", ".join(filter(None, name)): _cell(*name, row) for name, row in rows.items()},
        int(stored["plan"]["seed"]),
        sum(row["sum"]["holds"] for row in rows.values()),
        [str(run["run"]) for row in rows.values() for run in row["runs"] if run.get("run")],
        kind,
    )


_STATES: dict[str, State] = {"kept": "passed", "untested": "skipped", "unknown": "skipped"}


def _cell(group: str, test: str, row: Mapping[str, Any]) -> Line:
    total = row["sum"]
    state = _STATES.get(total["state"], "failure")
    if total["crashed"] and not total["runs"]:
        state = "error"
    outcome = ", ".join(STATES[mark].word for mark in total["marks"])
    text = "\n".join(
        [total["words"], *(f"run: {one['run']}" for one in row["runs"] if "run" in one)]
    )
    return Line(outcome, total["words"], state, total["state"], group, test, text)


def _record(folder: Path) -> Collected:
    rows = known_defects.read(folder)
    counts = Counter(row["outcome"] for row in rows)
    came = ", ".join(f"{many} {outcome}" for outcome, many in counts.items())
    return Collected(
        "track-record",
        f"{count(len(rows), 'defect')}: {came}" if rows else "nothing was played yet",
        None,
        [],
        {str(row["key"]): _shown(row) for row in rows},
        runs=[str(row["run"]) for row in rows if row.get("run")],
        name="track-record",
    )


def _shown(row: Mapping[str, Any]) -> Line:
    outcome, (defect, _, where) = str(row["outcome"]), str(row["key"]).partition("/")
    state, text = known_defects.state(row), row.get("command", "")
    return Line(outcome, str(row.get("said", "")), state, outcome, defect, where, text)


def _defects(folder: Path) -> Collected:
    stored = campaign_files.read(folder, "defects")
    rows = defect_scores.of_rows(stored.rows)
    scores = defect_scores.scores(rows)
    words = "; ".join(f"{way}: {one.words}" for way, one in scores.items())
    return Collected(
        "defects",
        words or "nothing was played yet",
        None,
        [],
        {f"{row.defect}, {way}": _scored(row, way) for row in rows for way in row.cells},
        int(stored.plan["seed"]),
        runs=[str(line["run"]) for line in stored.lines if line.get("run")],
        name="defects",
    )


def _scored(row: defect_scores.Row, way: str) -> Line:
    """Return the result of one way. A missed defect is no failure, but an untrue verdict is one."""
    cell = row.cells[way]
    state: State = "passed" if cell.state == "found" else "skipped"
    if cell.wrong:
        state = "failure"
    elif cell.state == "not played" and cell.words != "not played":
        state = "error"
    kind = "untrue" if cell.wrong else cell.state
    outcome = f"{cell.state}, a verdict is untrue" if cell.wrong else cell.state
    return Line(outcome, cell.words, state, kind, row.defect, way, row.what, cell.state == "missed")


def _campaign(folder: Path) -> Collected:
    stored = campaign_files.read(folder, "campaign")
    found = sum(bool(line.get("broken")) for line in stored.lines)
    done = len(stored.lines)
    came = f"broken from {found}" if found else "nothing found from any"
    words = f"{came} of {count(done, 'seed')}" if done else "no seed is done"
    if done and done < len(stored.rows):
        words += f", {len(stored.rows) - done} left"
    lines = {f"seed {row['key']}": _hunted(row["runs"]) for row in stored.rows}
    locks, first = [str(stored.plan["lock"])], min(map(_seed, stored.rows), default=None)
    valid = False if found else None
    return Collected("campaign", words, valid, locks, lines, first, name="campaign")


def _seed(row: Mapping[str, Any]) -> int:
    try:
        return int(row["key"])
    except ValueError as error:
        raise ReportError(f"{row['key']!r} is not a seed") from error


def _hunted(runs: Sequence[Mapping[str, Any]]) -> Line:
    if not runs:
        return Line("not done", state="skipped")
    one = runs[-1]
    if why := one.get("failure") or one.get("crashed"):
        return Line(str(why), state="error", kind="crashed")
    return hunted(
        one.get("broken", []), one.get("strikes", 0), one.get("schedules", 0), one.get("story", [])
    )


def hunted(broken: list[str], injections: int, schedules: int, story: list[str]) -> Line:
    """Return the result of a hunt from one seed."""
    tried = f"{schedules:,} schedules"
    if not broken:
        return Line("nothing found", tried)
    more = f"{count(injections, 'injection')}, {tried}"
    outcome = f"broken: {', '.join(broken)}"
    return Line(outcome, more, "failure", "violation", text="\n".join(story))


def _night(folder: Path) -> Collected:
    stored = night_file.read(folder)
    rows = stored["entries"]
    states = {row["state"] for row in rows}
    runs = [run for row in rows for run in (row["run"], row["known"]["run"])]
    unsure: Valid = "unknown" if states & {"unknown", "crashed"} else True
    return Collected(
        "night",
        nightly.headline(stored),
        None if not rows else False if "changed" in states else unsure,
        [],
        # Left out if it did not fit, so that it does not differ from a nightly run in which it did.
        {row["key"]: Line("; ".join(row["marks"]) or "crashed", row["said"])
         for row in rows if row["marks"] or row["crashed"]},
        stored["seed"],
        sum(row["holds"] or 0 for row in rows) or None,
        [f"../../{run}" for run in runs if run and not run.startswith("/")],
    )  # fmt: skip


def _bench(folder: Path) -> Collected:
    rows = [row for row in campaign_files.read(folder, "bench").rows if row["runs"]]
    lines = {row["key"]: _costs(row["runs"][-1]) for row in rows}
    words = f"the costs of {count(len(lines), 'lock')}"
    return Collected("bench", words, None, list(lines), lines, name="bench")


def _costs(run: Mapping[str, Any]) -> Line:
    if why := run.get("crashed"):
        return Line("not measured", why, "error", "crashed")
    alone = run["phases"].get("alone") or {}
    median_ms, rate = alone.get("acquire_p50"), alone.get("rate")
    if median_ms is None or rate is None:
        return Line("not measured", state="error")
    return Line("measured", f"acquire {median_ms:.3g} ms, {rate:,.0f} pairs a second, alone")


KINDS: dict[str, Callable[[Path], Collected]] = {
    "suite": _suite,
    "matrix": _matrix,
    "sweep": _sweep,
    "track-record": _record,
    "campaign": _campaign,
    "bench": _bench,
    "defects": _defects,
    "night": _night,
}


def markdown(title: str, found: Collected) -> str:
    """Return a summary in Markdown, with the rows that failed or are `noted`."""
    lines = [f"### {inert(title)}: {inert(found.words)}", ""]
    for name, line in found.lines.items():
        if line.state in ("failure", "error") or line.noted:
            named = f"**{inert(line.group or name)}**" + f", {inert(line.test)}" * bool(line.group)
            lines.append(f"- {named}: {inert(str(line))}")
    return "\n".join([*lines, "", ""])
