"""`fencepost bench`: measure what locks cost."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fencepost.harness.campaigns import campaign, costs
from fencepost.harness.campaigns.campaign import Campaign, Line
from fencepost.harness.command import screen
from fencepost.harness.command.campaign import How, View, carry_out, with_how
from fencepost.harness.command.options import Seed
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.spec import seconds
from fencepost.report.pages import bench as report


@with_how
def bench(
    how: How,
    locks: Annotated[
        list[str] | None, typer.Argument(help="Locks to measure, compared with redis.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Time of each of the three phases. [default: 5s]")
    ] = None,
    seed: Seed = None,
) -> int:
    if how.parallel or how.scheduler:
        raise BadArguments(
            "costs can only be compared if one idle machine measures them all: leave --parallel "
            "and --engine out"
        )
    given = {"LOCK": locks, "--time": time, "--seed": seed}
    found = how.resumed("bench", costs.from_json, given)
    if found is None:
        if not locks:
            raise BadArguments("a bench needs LOCK (fencepost bench redlock), or --resume")
        plan = costs.plan(tuple(locks), seconds("time", time or "5s"), from_arguments.seed(seed))
        found = campaign.create(plan)
    with how.executor() as executor:
        return carry_out([found], how, _VIEW, executor)


def _finished(found: Campaign, line: Line) -> None:
    if "crashed" in line:
        screen.write(f"{line['row']}: {line['crashed']}")


def _ended(found: Campaign) -> None:
    stored = report.read(found.folder)
    _table(report.relative(stored["locks"], stored["baseline"]))


_VIEW = View(_finished, _ended, lambda found: report.render(found.folder))


def _table(rows: list[dict[str, Any]]) -> None:
    """Print the figures of each lock, with the ratio to the baseline's in brackets."""
    table = screen.table(
        "lock", *(title for _, _, title in report.COLUMNS), "round trips: acquire + release",
        title="Costs, with (the ratio to the first)", right=True,
    )  # fmt: skip
    for row in rows:
        trips = f"{row['trips']['acquire']:g} + {row['trips']['release']:g}"
        table.add_row(row["lock"], *(_cell(*cell) for cell in row["cells"]), trips)
    screen.console().print(table)


def _cell(value: float | None, ratio: float | None) -> str:
    if value is None:
        return "-"
    figure = f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    return f"{figure} ({ratio:.2f})" if ratio is not None else figure
