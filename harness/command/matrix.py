"""`fencepost matrix`: every lock under every fault, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from fencepost.checker.verdict import count
from fencepost.harness.campaigns import matrix as matrices
from fencepost.harness.campaigns import matrix_plan
from fencepost.harness.campaigns import rounds as rounds_of
from fencepost.harness.campaigns.dask_executor import Workers
from fencepost.harness.campaigns.executors import ENGINES, scheduler_of
from fencepost.harness.campaigns.matrix import Matrix
from fencepost.harness.campaigns.matrix_plan import Cell
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.command import screen
from fencepost.harness.command.options import Engine, HostsFile, Remote, Results, Scheduler, Seed
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute.run import run
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.locked import locked
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.needs import cluster_for
from fencepost.harness.spec.spec import Spec, seconds
from fencepost.report.pages.matrix import title
from fencepost.report.words.cells import STATES, summed
from fencepost.report.words.findings import headline
from fencepost.times import describe

_STYLE = {"kept": "green", "broken": "red", "damaged": "red", "unavailable": "red"}


def matrix(
    locks: Annotated[
        str, typer.Option(metavar="NAME,...", help="The locks. [default: all that are sound]")
    ] = "",
    faults: Annotated[
        str,
        typer.Option(
            metavar="FAULT,...",
            help="The columns: none, entries as --nemesis has them, or all of these together. "
            f"[default: {','.join(matrix_plan.usual_faults())}]",
        ),
    ] = "",
    guards: Annotated[
        str, typer.Option(metavar="NAME,...", help="The guards. [default: none,fenced]")
    ] = "",
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Go on for so long, round after round with new seeds. [default: one round]",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How long the clients of each run work. [default: 20s, or what fits the budget]",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Every lock under every fault, in short runs without a guard, for up to 15 min.",
        ),
    ] = False,
    aim: Annotated[
        bool,
        typer.Option("--aim", help="Faults wait for their moment, as for a test (docs/faults.md)."),
    ] = False,
    parallel: Annotated[
        int | None,
        typer.Option(
            help="How many cells run at a time, each on a cluster of its own. [default: 1; with "
            "--quick 2]",
            min=1,
            max=4,
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Go on with a matrix: its folder, its TIME, or latest."),
    ] = None,
    parquet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the table to this file (fencepost[frames])."),
    ] = None,
    seed: Seed = None,
    results: Results = None,
    remote: Remote = "docker",
    hosts: HostsFile = None,
    engine: Engine = ENGINES[0],
    scheduler: Scheduler = None,
) -> int:
    budget_s = None if budget is None else seconds("budget", budget)
    address = scheduler_of(engine, scheduler)
    if address and (parallel or remote != "docker" or hosts is not None):
        raise BadArguments(
            "--engine dask has containers on its workers' machines, and as many cells at a time as "
            "there are workers: leave --hosts, --remote and --parallel out"
        )
    if parquet is not None:
        _must_have_pandas()
    with closing(Workers(address)) if address else nullcontext() as workers:
        lanes = workers.count if workers else parallel or (2 if quick and hosts is None else 1)
        if lanes > 1 and hosts is not None:
            raise BadArguments("--parallel needs containers: the hosts of a file are one cluster")
        if resume is not None:
            given = {
                "--locks": locks, "--faults": faults, "--guards": guards, "--time": time,
                "--quick": quick, "--aim": aim, "--seed": seed,
            }  # fmt: skip
            if wrong := [option for option, value in given.items() if value]:
                raise BadArguments(
                    f"--resume takes all from the matrix that it names: not {wrong[0]}"
                )
            found = matrices.resumed(resume)
        else:
            if quick and budget_s is None:
                budget_s = matrix_plan.QUICK_S
            asked = matrix_plan.plan(
                _names(locks), _names(faults), _names(guards), from_arguments.seed(seed),
                None if time is None else seconds("time", time), budget_s, quick,
                lanes, aim,
            )  # fmt: skip
            found = matrices.create(asked)
        _announce(found, lanes)
        # Of a matrix of which a round is over, only a budget asks for more.
        rounds = None if budget_s is not None and not quick else max(found.rounds.done, 1)
        try:
            with locked(found.folder):
                if workers:
                    whole = _by(workers, found, rounds, budget_s)
                else:
                    whole = _here(found, rounds, budget_s, lanes, remote, hosts)
        finally:
            page = found.render()
            _tell(found, page)
            if parquet is not None:
                _to_parquet(found.folder, parquet)
    if not whole and found.rounds.done < 1:
        screen.write(f"Not all of it was run: fencepost matrix --resume {found.folder.name}")
    return 0


def _here(
    found: Matrix, rounds: int | None, budget_s: float | None, lanes: int, remote: str,
    hosts: Path | None,
) -> bool:  # fmt: skip
    """Carry it out on clusters of this machine, or on hosts; whether all of it was run."""

    def up(specs: Sequence[Spec]) -> AbstractContextManager[Cluster]:
        return cluster_for(specs, screen.say, False, remote, hosts)

    def carry_out(cell: Cell, spec: Spec, cluster: Cluster) -> Outcome:
        if lanes > 1:
            # A terminal has room for one view; a line says what came of each.
            return run(spec, cluster, lambda status: None)
        what = f"{spec.lock}, {','.join(spec.nemesis) or 'no fault'}, guard {spec.guard}"
        with screen.progress(what, spec.time_s) as progress:
            return run(spec, cluster, progress)

    return rounds_of.carry_out(found, rounds, budget_s, up, carry_out, _say, lanes)


def _by(workers: Workers, found: Matrix, rounds: int | None, budget_s: float | None) -> bool:
    """Have it carried out by Dask's workers, each run on a cluster that comes up for it."""

    def up(specs: Sequence[Spec]) -> AbstractContextManager[Workers]:
        return nullcontext(workers)

    def carry_out(cell: Cell, spec: Spec, workers: Workers) -> Outcome:
        return workers.run(spec)()

    return rounds_of.carry_out(found, rounds, budget_s, up, carry_out, _say, workers.count)


def _must_have_pandas() -> None:
    """Raise BadArguments if a table cannot be written as Parquet here."""
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


def _announce(found: Matrix, lanes: int) -> None:
    """What is to be run, and what cannot be, with the reason."""
    asked = found.plan
    kinds = matrix_plan.kinds_of(found.rounds.cells)
    takes_min = max(round(rounds_of.round_s(kinds, asked.time_s, lanes) / 60), 1)
    screen.say(
        f"{count(len(found.rounds.testable), 'cell')}: {count(len(asked.locks), 'lock')}, "
        f"{count(len(asked.faults), 'fault')}, {count(len(asked.guards), 'guard')}; "
        f"{describe(asked.time_s)} each, {f'{lanes} at a time, ' if lanes > 1 else ''}"
        f"{'faults aimed, ' if asked.aim else ''}seed "
        f"{asked.seed}; a round takes about {takes_min} min"
    )
    reasons: dict[str, list[Cell]] = {}
    for cell in found.rounds.cells:
        if cell.reason:
            reasons.setdefault(cell.reason, []).append(cell)
    for reason, cells in reasons.items():
        which = dict.fromkeys(f"{one.lock} {_title(one.fault)}" for one in cells)
        rows = dict.fromkeys(f"{one.lock}, guard {one.guard}" for one in cells)
        named = list(which if len(which) <= len(rows) else rows)
        more = f" and {len(named) - 4} more" if len(named) > 5 else ""
        shown = ", ".join(named if not more else named[:4])
        screen.say(f"not tested: {shown}{more}: {reason}")


def _say(cell: Cell, number: int, row: dict[str, Any]) -> None:
    """One line as soon as a run is over."""
    came = summed({"runs": [row], "reason": ""})
    state = STATES[came["state"]]
    text = Text(f"{cell.lock}, {_title(cell.fault)}, guard {cell.guard}: ")
    text.append(state.word, style=_STYLE.get(came["state"], "yellow"))
    text.append(f"  {came['words']}")
    screen.console().print(text, soft_wrap=True)


def _tell(found: Matrix, page: Path) -> None:
    """The table in a terminal, and where the page is."""
    rows = found.to_json()["cells"]
    places = {(row["lock"], row["guard"], row["fault"]): row["sum"] for row in rows}
    asked = found.plan
    table = screen.table("lock", "guard", *map(_title, asked.faults), whole=2)
    for lock in asked.locks:
        for guard in asked.guards:
            sums = [places[lock, guard, fault] for fault in asked.faults]
            table.add_row(lock, guard, *map(_shown, sums))
    screen.console().print(table)
    counts = Counter(one["state"] for one in places.values())
    key = [f"{one.sign} {one.word} ({counts[name]})" for name, one in STATES.items()]
    screen.write(", ".join(key))
    screen.write(headline(rows))
    screen.write(f"page: {page}")


def _title(fault: str) -> str:
    return title(fault, matrix_plan.columns_of([fault]))


def _shown(total: dict[str, Any]) -> Text:
    signs = " ".join(STATES[mark].sign for mark in total["marks"])
    dim = total["state"] == "untested"
    return Text(signs, style="dim" if dim else _STYLE.get(total["state"], "yellow"))
