"""`fencepost analyze`, `explain` and `report`: judges or shows a stored run again."""

from __future__ import annotations

from typing import Annotated

import typer

from fencepost.harness.command import screen
from fencepost.harness.command.exits import EXIT
from fencepost.harness.command.options import FailOn, Results, Run
from fencepost.harness.process import memory_limited
from fencepost.harness.results.finder import find, newest
from fencepost.harness.spec.fail_on import read
from fencepost.report.words.answer import counted

_SHOWN = 10


def analyze(
    run: Run,
    fail_on: FailOn = None,
    memory_limit: Annotated[
        float | None,
        typer.Option(
            metavar="MB",
            min=1.0,
            max=1e9,
            help="Limit of growth in MB; beyond it the verdict is unknown.",
            show_default=False,
        ),
    ] = None,
    results: Results = None,
) -> int:
    from fencepost.harness.judge.segments import judge_run

    asked = read(fail_on)
    folder = find(run)
    try:
        with memory_limited(memory_limit):
            outcome = judge_run(folder)
    except MemoryError:
        screen.write(f"Unknown: the memory did not suffice to judge {folder}.")
        return EXIT["unknown"]
    screen.verdict(outcome, asked)
    return EXIT[counted(outcome.results, asked)]


def explain(run: Run = "latest", fail_on: FailOn = None, results: Results = None) -> int:
    from fencepost.harness.api.result import load
    from fencepost.harness.judge.judge import Outcome

    asked = read(fail_on)
    found = load(run)
    outcome = Outcome(found.folder, found.verdict, found.verdicts, found.results)
    screen.verdict(outcome, asked, pieces=None)
    return EXIT[counted(found.results, asked)]


def report(
    run: Annotated[
        str, typer.Argument(help="A run's folder, or TEST, or TEST/TIME. [default: list them]")
    ] = "",
    results: Results = None,
) -> None:
    from fencepost.harness.judge import judge, segments
    from fencepost.harness.results.results import is_long

    if not run:
        _list()
        return
    folder = find(run)
    write = segments.write_report if is_long(folder) else judge.write_report
    screen.write(str(write(folder)))


def _list() -> None:
    """Print the newest runs of the results folder."""
    found = newest(_SHOWN)
    if not found:
        screen.write("No runs yet: start one with `fencepost test redis --time 10`.")
        return
    screen.write("The newest runs; `fencepost report RUN` writes a report again:")
    for name in found:
        screen.write(f"  {name}")
