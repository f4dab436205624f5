"""`fencepost matrix`: run every lock under every fault, and print the results as one table."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from fencepost.checker.verdict import count
from fencepost.harness.campaigns import campaign
from fencepost.harness.campaigns import matrix as matrices
from fencepost.harness.campaigns.campaign import Campaign, Line
from fencepost.harness.campaigns.item import round_s
from fencepost.harness.campaigns.matrix import Cell, Plan
from fencepost.harness.command import screen
from fencepost.harness.command.campaign import (
    STATE_STYLE,
    How,
    View,
    carry_out,
    cell_line,
    leader_table,
    with_how,
)
from fencepost.harness.command.options import Seed
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.spec import seconds
from fencepost.report.pages import matrix as report
from fencepost.report.pages.matrix import title
from fencepost.report.words.cells import STATES
from fencepost.report.words.findings import headline
from fencepost.times import describe


@with_how
def matrix(
    how: How,
    locks: Annotated[
        str, typer.Option(metavar="NAME,...", help="Locks to test. [default: all sound locks]")
    ] = "",
    faults: Annotated[
        str,
        typer.Option(
            metavar="FAULT,...",
            help="Columns: none, --nemesis entries, or all of them together. [default: "
            f"{','.join(matrices.usual_faults())}]",
        ),
    ] = "",
    guards: Annotated[
        str, typer.Option(metavar="NAME,...", help="Guards to test. [default: none,fenced]")
    ] = "",
    time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time that the clients of each run work. [default: 20s, or what fits the budget]",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run every lock under every fault, in short runs without a guard; 15 min at most.",
        ),
    ] = False,
    aim: Annotated[
        bool,
        typer.Option(
            "--aim", help="Trigger faults at chosen moments, as in a test (docs/faults.md)."
        ),
    ] = False,
    parquet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the table to this file (fencepost[frames])."),
    ] = None,
    seed: Seed = None,
) -> int:
    if parquet is not None:
        _must_have_pandas()
    given = {
        "--locks": locks, "--faults": faults, "--guards": guards, "--time": time,
        "--quick": quick, "--aim": aim, "--seed": seed,
    }  # fmt: skip
    found = how.resumed("matrix", matrices.from_json, given)
    lanes = 2 if quick and how.hosts is None else 1
    with how.executor(lanes) as executor:
        if found is None:
            if quick and how.budget is None:
                how = replace(how, budget=matrices.QUICK)
            asked = matrices.plan(
                _names(locks), _names(faults), _names(guards), from_arguments.seed(seed),
                None if time is None else seconds("time", time), how.budget_s, quick,
                executor.lanes, aim,
            )  # fmt: skip
            found = campaign.create(asked)
        assert isinstance(found.plan, Plan)
        _announce(found.plan, executor.lanes)
        # After a full round, only a budget asks for another one.
        rounds = None if how.budget is not None and not quick else max(found.done, 1)
        try:
            return carry_out([found], how, _VIEW, executor, rounds)
        finally:
            if parquet is not None:
                _to_parquet(found.folder, parquet)


def _must_have_pandas() -> None:
    """Raise BadArguments if a library that writes Parquet is missing."""
    if lacking := [name for name in ("pandas", "pyarrow") if find_spec(name) is None]:
        raise BadArguments(
            f"--parquet needs {' and '.join(lacking)}: pip install 'fencepost[frames]'; matrix.csv "
            "has the same"
        )


def _to_parquet(folder: Path, file: Path) -> None:
    from fencepost.report.exports import frames

    frames.cells(folder).to_parquet(file)
    screen.write(f"table: {file}")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _announce(asked: Plan, lanes: int) -> None:
    """Print the cells to run, and those that cannot run with the reason."""
    kinds = matrices.kinds_of(asked.cells)
    takes_min = max(round(round_s(kinds, asked.time_s, lanes) / 60), 1)
    screen.say(
        f"{count(len(kinds), 'cell')}: {count(len(asked.locks), 'lock')}, "
        f"{count(len(asked.faults), 'fault')}, {count(len(asked.guards), 'guard')}; "
        f"{describe(asked.time_s)} each, {f'{lanes} at a time, ' if lanes > 1 else ''}"
        f"{'faults aimed, ' if asked.aim else ''}seed "
        f"{asked.seed}; a round takes about {takes_min} min"
    )
    reasons: dict[str, list[Cell]] = {}
    for cell in asked.cells:
        if cell.reason:
            reasons.setdefault(cell.reason, []).append(cell)
    for reason, cells in reasons.items():
        which = dict.fromkeys(f"{one.lock} {_title(one.fault)}" for one in cells)
        rows = dict.fromkeys(f"{one.lock}, guard {one.guard}" for one in cells)
        named = list(which if len(which) <= len(rows) else rows)
        more = f" and {len(named) - 4} more" if len(named) > 5 else ""
        shown = ", ".join(named if not more else named[:4])
        screen.say(f"not tested: {shown}{more}: {reason}")


def _finished(found: Campaign, line: Line) -> None:
    row = found.rows[line["row"]]
    cell_line(f"{row['lock']}, {_title(row['fault'])}, guard {row['guard']}", line)


def _ended(found: Campaign) -> None:
    """Print the table in a terminal."""
    stored = report.read(found.folder)
    asked, rows = stored["plan"], stored["cells"]
    places = {(row["lock"], row["guard"], row["fault"]): row["sum"] for row in rows}
    table = screen.table("lock", "guard", *map(_title, asked["faults"]), whole=2)
    for lock in asked["locks"]:
        for guard in asked["guards"]:
            sums = [places[lock, guard, fault] for fault in asked["faults"]]
            table.add_row(lock, guard, *map(_shown, sums))
    screen.console().print(table)
    leader_table(report.contents(found.folder.name, stored, rows)["leaders"])
    counts = Counter(one["state"] for one in places.values())
    key = [f"{one.sign} {one.word} ({counts[name]})" for name, one in STATES.items()]
    screen.write(", ".join(key))
    screen.write(headline(rows))


def _title(fault: str) -> str:
    return title(fault, matrices.columns_of([fault]))


def _shown(total: dict[str, Any]) -> Text:
    signs = " ".join(STATES[mark].sign for mark in total["marks"])
    return Text(signs, style=STATE_STYLE.get(total["state"], "yellow"))


_VIEW = View(_finished, _ended, lambda found: report.render(found.folder), page="page")
