"""`fencepost sweep`: run a lock over a grid of a setting and a fault, to find where safety ends."""

from __future__ import annotations

from typing import Annotated

import typer

from fencepost.checker.verdict import count
from fencepost.harness.campaigns import sweep as sweeps
from fencepost.harness.campaigns.axes import OF_FAULTS, SETTINGS
from fencepost.harness.campaigns.campaign import Campaign, Line
from fencepost.harness.campaigns.sweep import Plan
from fencepost.harness.command import screen
from fencepost.harness.command.campaign import (
    How,
    View,
    carry_out,
    cell_line,
    leader_table,
    with_how,
)
from fencepost.harness.command.options import LockOptions, Seed, Servers
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec import from_arguments
from fencepost.report.pages import sweep as report

_SETTINGS, _FAULTS = ", ".join(SETTINGS), ", ".join(OF_FAULTS)


@with_how
def sweep(
    how: How,
    lock: Annotated[str, typer.Argument(help="Lock to test: `fencepost locks` lists them.")] = "",
    x: Annotated[
        str,
        typer.Option(
            metavar="AXIS=FROM..TO",
            help=f"Horizontal axis. A setting ({_SETTINGS}) or a property of a fault "
            f"({_FAULTS}); the sweep needs one of each, or two settings and --fault.",
        ),
    ] = "",
    y: Annotated[str, typer.Option(metavar="AXIS=FROM..TO", help="Vertical axis.")] = "",
    fault: Annotated[
        str,
        typer.Option(
            metavar="AXIS=VALUE", help="Fault of all cells, if both axes are settings: pause=3s."
        ),
    ] = "",
    steps: Annotated[
        str, typer.Option(metavar="NxM", help="Number of values on each axis.")
    ] = sweeps.STEPS,
    runs: Annotated[
        int | None, typer.Option(help="Number of runs in each cell. [default: 1]", min=1)
    ] = None,
    option: LockOptions = None,
    guard: Annotated[str, typer.Option(help="Guard: the rule that the resource checks.")] = "none",
    server: Servers = None,
    seed: Seed = None,
) -> int:
    given = {
        "LOCK": lock, "--x": x, "--y": y, "--fault": fault, "--option": option,
        "--server": server, "--seed": seed,
    }  # fmt: skip
    found = how.resumed("sweep", sweeps.from_json, given)
    if found is None:
        if lacking := [word for word, value in {"LOCK": lock, "--x": x, "--y": y}.items()
                       if not value]:  # fmt: skip
            raise BadArguments(
                f"a sweep needs {lacking[0]}: fencepost sweep redlock --x ttl=0.5s..10s --y "
                f"pause=0.5s..20s, for example. Settings: {_SETTINGS}; faults: {_FAULTS}"
            )
        asked = sweeps.plan(
            lock, x, y, from_arguments.seed(seed), steps, from_arguments.pairs(option), guard,
            from_arguments.servers(server), fault,
        )  # fmt: skip
        found = Campaign(asked)
    plan = found.plan
    assert isinstance(plan, Plan)
    rounds = runs or (None if how.budget_s is not None else max(found.done, 1))
    with how.executor() as executor:
        found.begin()
        _announce(plan)
        return carry_out([found], how, _VIEW, executor, rounds)


def _announce(plan: Plan) -> None:
    """Print the cells to run, and those that cannot run with the reason."""
    takes_min = max(round(sweeps.round_s(plan.cells) / 60), 1)
    testable = sum(1 for cell in plan.cells if cell.spec)
    screen.say(
        f"{plan.lock}: {count(testable, 'cell')}, {len(plan.x.values)} values of "
        f"{plan.x.of.title} by {len(plan.y.values)} of {plan.y.of.title}"
        f"{f', {plan.fault}' if plan.fault else ''}; seed {plan.seed}; one run of each takes about "
        f"{takes_min} min"
    )
    for reason in dict.fromkeys(cell.reason for cell in plan.cells if cell.reason):
        many = count(sum(1 for cell in plan.cells if cell.reason == reason), "cell")
        screen.say(f"not tested: {many}: {reason}")


def _finished(found: Campaign, line: Line) -> None:
    stored = found.plan.to_json()
    cell_line(report.title((stored["x"], stored["y"]), found.rows[line["row"]]), line)


def _ended(found: Campaign) -> None:
    """Print the maps in a terminal."""
    stored = report.read(found.folder)
    plan, shown = stored["plan"], report.contents(found.folder.name, stored)
    for one in shown["maps"]:
        table = screen.table(
            f"{plan['y']['title']} / {plan['x']['title']}", *plan["x"]["shown"],
            title=f"{one['title']} ({one['what']})",
        )  # fmt: skip
        for row in one["rows"]:
            tiles = [f"{tile['figure']} ({tile['counts']})" for tile in row["tiles"]]
            table.add_row(row["title"], *tiles)
        screen.console().print(table)
    leader_table(shown["leaders"])
    for words in shown["unseen"]:
        screen.write(words)
    screen.write(report.headline(stored))


_VIEW = View(_finished, _ended, lambda found: report.render(found.folder), page="page")
