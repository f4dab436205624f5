"""`fencepost sweep`: a lock over a grid of a setting and a fault, and where safety ends."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text

from fencepost.checker.verdict import count
from fencepost.harness.campaigns import rounds, sweep_plan
from fencepost.harness.campaigns import sweep as sweeps
from fencepost.harness.campaigns.axes import AXES
from fencepost.harness.campaigns.sweep import Sweep
from fencepost.harness.campaigns.sweep_plan import Cell
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.command import screen
from fencepost.harness.command.options import HostsFile, Remote, Results, Seed, Servers
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute.run import run
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.locked import locked
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.needs import cluster_for
from fencepost.harness.spec.spec import Spec, seconds
from fencepost.report.pages.sweep import headline
from fencepost.report.words.cells import STATES, summed

_STYLE = {"kept": "green", "broken": "red", "damaged": "red", "unavailable": "red"}
_SETTINGS = ", ".join(name for name, axis in AXES.items() if axis.sets)
_FAULTS = ", ".join(name for name, axis in AXES.items() if axis.strikes)


def sweep(
    lock: Annotated[str, typer.Argument(help="The lock: `fencepost locks` lists them.")] = "",
    x: Annotated[
        str,
        typer.Option(
            metavar="AXIS=FROM..TO",
            help=f"What changes from left to right. A setting ({_SETTINGS}) or what a fault is "
            f"like ({_FAULTS}): one side is of each.",
        ),
    ] = "",
    y: Annotated[
        str, typer.Option(metavar="AXIS=FROM..TO", help="What changes from the bottom to the top.")
    ] = "",
    steps: Annotated[
        str, typer.Option(metavar="NxM", help="How many values each side has.")
    ] = sweep_plan.STEPS,
    runs: Annotated[
        int | None, typer.Option(help="How many runs each cell has. [default: 1]", min=1)
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", help="The lock's own, NAME=VALUE: `fencepost locks LOCK`."),
    ] = None,
    guard: Annotated[str, typer.Option(help="What the resource checks.")] = "none",
    server: Servers = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Begin no run that would end later. [default: as long as it takes]"
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Go on with a sweep: its folder, its TIME, or latest."),
    ] = None,
    seed: Seed = None,
    results: Results = None,
    remote: Remote = "docker",
    hosts: HostsFile = None,
) -> int:
    budget_s = None if budget is None else seconds("budget", budget)
    if resume is not None:
        given = {
            "LOCK": lock, "--x": x, "--y": y, "--option": option, "--server": server,
            "--seed": seed,
        }  # fmt: skip
        if wrong := [word for word, value in given.items() if value]:
            raise BadArguments(f"--resume takes all from the sweep that it names: not {wrong[0]}")
        found = sweeps.resumed(resume)
    else:
        if lacking := [word for word, value in {"LOCK": lock, "--x": x, "--y": y}.items()
                       if not value]:  # fmt: skip
            raise BadArguments(
                f"a sweep needs {lacking[0]}: fencepost sweep redlock --x ttl=0.5s..10s --y "
                f"pause=0.5s..20s, say. Settings: {_SETTINGS}; faults: {_FAULTS}"
            )
        asked = sweep_plan.plan(
            lock, x, y, from_arguments.seed(seed), steps, from_arguments.pairs(option or []), guard,
            from_arguments.servers(server or []),
        )  # fmt: skip
        found = sweeps.create(asked)
    _announce(found)
    most = runs or (None if budget_s is not None else max(found.rounds.done, 1))
    try:
        with locked(found.folder):
            whole = _carry_out(found, most, budget_s, remote, hosts)
    finally:
        page = found.render()
        _tell(found)
        screen.write(f"page: {page}")
    if not whole and found.rounds.done < (runs or 1):
        screen.write(f"Not all of it was run: fencepost sweep --resume {found.folder.name}")
    return 0


def _carry_out(
    found: Sweep, most: int | None, budget_s: float | None, remote: str, hosts: Any
) -> bool:
    def up(specs: Sequence[Spec]) -> AbstractContextManager[Cluster]:
        return cluster_for(specs, screen.say, False, remote, hosts)

    def carry_out(cell: Cell, spec: Spec, cluster: Cluster) -> Outcome:
        faults = sweep_plan.schedule(found.plan, cell, spec)
        with screen.progress(_named(found, cell), spec.time_s) as progress:
            return run(spec, cluster, progress, schedule=faults)

    return rounds.carry_out(found, most, budget_s, up, carry_out, partial(_say, found))


def _named(found: Sweep, cell: Cell) -> str:
    sides = zip((found.plan.x, found.plan.y), (cell.x, cell.y), strict=True)
    return ", ".join(f"{side.of.title} {side.shown(value)}" for side, value in sides)


def _announce(found: Sweep) -> None:
    """What is to be run, and what cannot be, with the reason."""
    plan, board = found.plan, found.rounds
    takes_min = max(round(sweep_plan.round_s(board.cells) / 60), 1)
    screen.say(
        f"{plan.lock}: {count(len(board.testable), 'cell')}, {len(plan.x.values)} values of "
        f"{plan.x.of.title} by {len(plan.y.values)} of {plan.y.of.title}; seed {plan.seed}; one "
        f"run of each takes about {takes_min} min"
    )
    for reason in dict.fromkeys(cell.reason for cell in board.cells if cell.reason):
        many = count(sum(1 for cell in board.cells if cell.reason == reason), "cell")
        screen.say(f"not tested: {many}: {reason}")


def _say(found: Sweep, cell: Cell, number: int, row: dict[str, Any]) -> None:
    """One line as soon as a run is over."""
    came = summed({"runs": [row], "reason": ""})
    text = Text(f"{_named(found, cell)}: ")
    text.append(STATES[came["state"]].word, style=_STYLE.get(came["state"], "yellow"))
    text.append(f"  {came['words']}")
    screen.console().print(text, soft_wrap=True)


def _tell(found: Sweep) -> None:
    """The maps in a terminal."""
    from fencepost.report.pages.sweep import contents

    shown = contents(found.folder.name, found.to_json())
    for one in shown["maps"]:
        table = screen.table(
            f"{found.plan.y.of.title} / {found.plan.x.of.title}", *one["columns"],
            title=f"{one['title']}: per 1,000 holds (violating of all holds)",
        )  # fmt: skip
        for row in one["rows"]:
            tiles = [f"{tile['figure']} ({tile['counts']})" for tile in row["tiles"]]
            table.add_row(row["title"], *tiles)
        screen.console().print(table)
    for words in shown["unseen"]:
        screen.write(words)
    screen.write(headline(found.to_json()))
