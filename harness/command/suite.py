"""`fencepost suite`: scenarios, each against its published outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from fencepost.checker.checkers import CHECKERS
from fencepost.checker.verdict import worst
from fencepost.harness.campaigns import suite as suites
from fencepost.harness.campaigns.campaign import Campaign, Line
from fencepost.harness.campaigns.suite import EntryRuns, Plan
from fencepost.harness.campaigns.usable_suites import usable
from fencepost.harness.command import screen
from fencepost.harness.command.campaign import How, View, carry_out, with_how
from fencepost.harness.command.exits import CRASHED, EXIT
from fencepost.harness.command.options import LeaveUp, Seed, Servers
from fencepost.harness.errors import choose
from fencepost.harness.spec import from_arguments
from fencepost.report.exports.batches import Collected
from fencepost.report.pages import suite as report
from fencepost.workloads.scenarios.registry import SUITES

_NAMES = [suite.name for suite in SUITES.sound()[0]]


@with_how
def suite(
    how: How,
    names: Annotated[
        list[str] | None,
        typer.Argument(help=f"One of: {', '.join(_NAMES)}; or all. [default: list them]"),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only scenarios whose name begins with this prefix.")
    ] = None,
    seed: Seed = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, max=1000, help="Number of seeds over which rates are counted. [default: 3]"
        ),
    ] = None,
    server: Servers = None,
    leave_up: LeaveUp = False,
) -> int:
    given = {"NAME": names, "--only": only, "--seed": seed, "--seeds": seeds, "--server": server}
    if resumed := how.resumed("suite", suites.from_json, given):
        found = [resumed]
    elif not names:
        _list()
        return 0
    else:
        number, versions = from_arguments.seed(seed), from_arguments.servers(server)
        if names == ["all"]:
            every, bad = usable(number, versions, seeds)
            for why in bad:
                screen.say(f"left out: {why}")
        else:
            every = {
                name: suites.entries(choose("suite", name, SUITES), number, versions, seeds)
                for name in dict.fromkeys(names)
            }
        found = [
            Campaign(
                Plan(name, number, versions, seeds, tuple(entry.name for entry in entries)),
                f"suite-{name}",
            )
            for name, entries in (chosen(every, only) if only else every).items()
        ]
    for one in found:
        left = len(one.left(1))
        screen.say(f"Suite {_name(one)}, {left} runs, seed {one.plan.seed}")
    with how.executor(leave_up=leave_up) as executor:
        return carry_out(found, how, _VIEW, executor)


def _name(found: Campaign) -> str:
    assert isinstance(found.plan, Plan)
    return found.plan.suite


def _list() -> None:
    """Print every suite with its number of runs."""
    found, bad = usable(0)
    for name, entries in found.items():
        runs = sum(len(entry.specs) for entry in entries)
        screen.write(f"{name:14} {runs:3} runs: fencepost suite {name}")
    for why in bad:
        screen.say(f"left out: {why}")


def chosen(found: dict[str, list[EntryRuns]], only: list[str]) -> dict[str, list[EntryRuns]]:
    """Return the entries of each suite whose name begins with this prefix; drop suites without
    any."""
    names = list(dict.fromkeys(entry.name for entries in found.values() for entry in entries))
    suites.must_begin("scenario", only, names)
    begun = {
        suite: [entry for entry in entries if entry.name.startswith(tuple(only))]
        for suite, entries in found.items()
    }
    return {suite: entries for suite, entries in begun.items() if entries}


def _finished(found: Campaign, line: Line) -> None:
    """Print a line when a run of a suite has finished; for a rate, its counts, and a line per share
    after its last run."""
    row = {**found.rows[line["row"]], "runs": found.lines[line["row"]]}
    assert isinstance(found.plan, Plan)
    runs = len(found.plan.entries[row["key"]].specs)
    if "rate" in row and len(row["runs"]) < runs:
        counts = line.get("counts") or {}
        shares = (f"{name} {seen} of {total}" for name, (seen, total) in counts.items())
        words = ", ".join(shares) or line.get("why") or "not counted"
        screen.write(f"{row['scenario']}: run {len(row['runs'])} of {runs}: {words}")
        return
    _row(report.entry(row))


_PUBLISHED = {True: ("as published", "green"), False: ("NOT AS PUBLISHED", "red")}


def _mark(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the outcome of a scenario in words, and their style."""
    return _PUBLISHED[row["as_expected"]] if report.carried_out(row) else _MISSED


_MISSED = "not carried out", "yellow"


def _row(row: dict[str, Any]) -> None:
    if "rate" in row:
        for words in [row["why"], *report.shares(row["rate"])]:
            if words:
                screen.write(f"{row['scenario']}: {words}")
        return
    if row["observed"] and not row["expected"]:
        valid = worst(list(row["observed"].values()))
        mark, style = f"{screen.word(valid)} (a finding)", screen.STYLE[valid]
    else:
        mark, style = _mark(row)
    text = Text(f"{row['scenario']}, guard {row['guard']}: ")
    text.append(mark, style=style)
    if row["why"]:
        text.append(f"  {row['why']}")
    screen.console().print(text, soft_wrap=True)


def _ended(found: Campaign) -> None:
    rows = report.read(found.folder)
    played = [row for row in rows if "rate" not in row and "cost" not in row]
    if played:
        _table(played)
    for row in rows:
        if "cost" in row:
            _costs(row["cost"]["locks"])
    screen.write(report.tally(rows))


def _costs(rows: list[dict[str, Any]]) -> None:
    table = screen.table(
        "lock", "acquire and release, p50 (ms)", "round trips", "pairs a second", right=True
    )
    for row in rows:
        table.add_row(
            row["lock"], f"{row['ms'] or 0:.3g}", f"{row['trips']:g}", f"{row['rate'] or 0:,.0f}"
        )
    screen.console().print(table)


def _table(rows: list[dict[str, Any]]) -> None:
    """Print a table of scenarios by checker: the observed verdict, and the expected one if it
    differs."""
    table = screen.table(
        "scenario", "guard", "claim", *(checker.column for checker in CHECKERS.values()), "outcome",
        title="Verdicts: observed, with (expected) where they differ",
    )  # fmt: skip
    for row in rows:
        cells = [_cell(row, name) for name in CHECKERS]
        mark, style = _mark(row) if row["expected"] else ("finding", "")
        table.add_row(row["scenario"], row["guard"], row["claim"], *cells, Text(mark, style))
    screen.console().print(table)


def _cell(row: Mapping[str, Any], name: str) -> Text:
    if name not in row["observed"]:
        return Text("-", style="dim")
    observed = row["observed"][name]
    short = {True: "T", False: "F", "unknown": "?"}
    expected = row["expected"].get(name, observed)
    if expected != observed:
        return Text(f"{short[observed]} ({short[expected]})", style="bold red")
    return Text(short[observed], style=screen.STYLE[observed])


def _exit_code(found: Collected) -> int:
    """Return 1 if an outcome is not as published, 255 if runs crashed and so gave no verdict, and 2
    if the schedule of one was not carried out."""
    wrong = [line for line in found.lines.values() if line.state in ("failure", "error")]
    if any(line.kind != "crashed" for line in wrong):
        return EXIT[False]
    if wrong:
        return CRASHED
    return EXIT["unknown" if found.any("skipped") else True]


_VIEW = View(_finished, _ended, lambda found: report.render(found.folder), _exit_code)
