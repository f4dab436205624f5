"""`fencepost suite`: scenarios, each against its published outcome."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from fencepost.checker.checkers import CHECKERS
from fencepost.checker.verdict import count
from fencepost.harness.campaigns import bench
from fencepost.harness.campaigns import suite as suites
from fencepost.harness.campaigns.dask_executor import Workers
from fencepost.harness.campaigns.executors import ENGINES, scheduler_of
from fencepost.harness.command import screen
from fencepost.harness.command.options import (
    Engine,
    HostsFile,
    Junit,
    LeaveUp,
    Remote,
    Results,
    Scheduler,
    Seed,
    Servers,
    Summary,
)
from fencepost.harness.command.reporter import Files
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.execute.run import run
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.needs import cluster_for
from fencepost.harness.spec.spec import Spec
from fencepost.report.exports.junit import scenarios
from fencepost.report.pages import suite as report
from fencepost.workloads.scenarios.registry import SUITES
from fencepost.workloads.scenarios.suite import Cost


def suite(
    names: Annotated[
        list[str] | None,
        typer.Argument(help=f"Of: {', '.join(SUITES)}; or all. [default: list them]"),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only scenarios whose name begins so.")
    ] = None,
    seed: Seed = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Over how many seeds rates are counted. [default: 3]"),
    ] = None,
    junit: Junit = None,
    summary: Summary = None,
    results: Results = None,
    server: Servers = None,
    leave_up: LeaveUp = False,
    remote: Remote = "docker",
    hosts: HostsFile = None,
    engine: Engine = ENGINES[0],
    scheduler: Scheduler = None,
) -> int:
    if not names:
        _list()
        return 0
    number, asked = from_arguments.seed(seed), from_arguments.servers(server or [])
    found = {
        name: suites.items(choose("suite", name, SUITES), number, asked, seeds)
        for name in dict.fromkeys(SUITES if names == ["all"] else names)
    }
    played = chosen(found, only) if only else found
    Files(junit, summary).must_be_writable()
    address = scheduler_of(engine, scheduler)
    if address and (leave_up or remote != "docker" or hosts is not None):
        raise BadArguments(
            "--engine dask needs containers on its workers' machines: leave --hosts, --remote and "
            "--leave-db-running out"
        )
    ways = _elsewhere(played, address) if address else _here(played, leave_up, remote, hosts)
    with _told_to_a_ci(junit, number) as done, ways as (carry_out, measure):
        for name, items in played.items():
            rows = done[name] = []
            screen.say(f"Suite {name}, {len(items)} runs, seed {number}")
            folder, _ = suites.run(name, items, carry_out, measure, partial(_row, rows))
            _tables(rows)
            screen.write(suites.tally(rows))
            screen.write(f"report: {folder / 'report.html'}")
            if summary is not None:
                with summary.open("a", encoding="utf-8") as file:
                    file.write(suites.summary(name, number, rows))
    return 0 if all(row["as_expected"] for rows in done.values() for row in rows) else 1


Ways = tuple[suites.CarryOut, suites.Measure]


@contextmanager
def _here(
    played: Mapping[str, list[suites.Item]], leave_up: bool, remote: str, hosts: Path | None
) -> Iterator[Ways]:
    """Runs one after the other, on a cluster that stays up meanwhile."""
    specs = [spec for items in played.values() for item in items for spec in item.specs]
    with cluster_for(specs, screen.say, leave_up, remote, hosts) as cluster:

        def carry_out(item: suites.Item, spec: Spec) -> Outcome:
            with screen.progress(spec.name) as progress:
                return run(spec, cluster, progress, item.scenario, item.schedule(spec))

        def measure(item: suites.Item) -> tuple[Path, Mapping[str, Any]]:
            return bench.kept(item.specs, cluster, *_measured(item), screen.say)

        yield carry_out, measure


@contextmanager
def _elsewhere(played: Mapping[str, list[suites.Item]], scheduler: str) -> Iterator[Ways]:
    """Runs by Dask's workers. All are handed out at once, and what came of them is told in the
    order of the suites."""
    with closing(Workers(scheduler)) as workers:
        screen.say(f"Runs go to {count(workers.count, 'worker')} of {scheduler}")
        waiting = deque(
            done
            for items in played.values()
            for item in items
            for done in (
                [workers.measure(item.specs, *_measured(item))]
                if isinstance(item.entry, Cost)
                else [workers.run(one, item.scenario, item.schedule(one)) for one in item.specs]
            )
        )

        def carry_out(item: suites.Item, spec: Spec) -> Outcome:
            outcome = waiting.popleft()()
            assert isinstance(outcome, Outcome)
            return outcome

        def measure(item: suites.Item) -> tuple[Path, Mapping[str, Any]]:
            found = waiting.popleft()()
            assert isinstance(found, tuple)
            return found

        yield carry_out, measure


def _measured(item: suites.Item) -> tuple[float, str]:
    """How long each phase of what locks cost is, and the command that measures the same."""
    assert isinstance(item.entry, Cost)
    time_s = item.entry.time_s
    asked = f"{' '.join(item.entry.locks)} --time {time_s:g}s --seed {item.spec.seed}"
    return time_s, f"fencepost bench {asked}"


@contextmanager
def _told_to_a_ci(junit: Path | None, seed: int) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """Write what is put there, the rows of each suite, as JUnit's XML, also if the suites end
    early."""
    done: dict[str, list[dict[str, Any]]] = {}
    ended: BaseException | None = None
    try:
        yield done
    except BaseException as error:
        ended = error
        raise
    finally:
        if junit is not None:
            junit.write_bytes(scenarios(done, seed, ended))


def _list() -> None:
    """Every suite, with how many runs it has."""
    for name in SUITES:
        runs = sum(len(item.specs) for item in suites.items(name, 0))
        screen.write(f"{name:14} {runs:3} runs: fencepost suite {name}")


def chosen(found: dict[str, list[suites.Item]], only: list[str]) -> dict[str, list[suites.Item]]:
    """The entries of each suite that begin so, without suites that have none."""
    names = list(dict.fromkeys(item.name for items in found.values() for item in items))
    for prefix in only:
        if not any(name.startswith(prefix) for name in names):
            raise BadArguments(
                f"there is no scenario {prefix!r}; choose one of: {', '.join(names)}"
            )
    begun = {
        suite: [item for item in items if item.name.startswith(tuple(only))]
        for suite, items in found.items()
    }
    return {suite: items for suite, items in begun.items() if items}


def _row(rows: list[dict[str, Any]], row: dict[str, Any], outcome: Outcome | None) -> None:
    """One line as soon as a run of a suite is over; of a rate one for each share."""
    rows.append(row)
    if "rate" in row:
        for words in [row["why"], *report.shares(row["rate"])]:
            if words:
                screen.write(f"{row['scenario']}: {words}")
        return
    if outcome is not None and not row["expected"]:
        mark, style = f"{screen.word(outcome.valid)} (a finding)", screen.STYLE[outcome.valid]
    elif row["as_expected"]:
        mark, style = "as published", "green"
    else:
        mark, style = "NOT AS PUBLISHED", "red"
    text = Text(f"{row['scenario']}, guard {row['guard']}: ")
    text.append(mark, style=style)
    if row["why"]:
        text.append(f"  {row['why']}")
    screen.console().print(text, soft_wrap=True)


def _tables(rows: list[dict[str, Any]]) -> None:
    played = [row for row in rows if "rate" not in row and "cost" not in row]
    if played:
        _table(played)
    for row in rows:
        if "cost" in row:
            _costs(row["cost"]["locks"])


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
    """Scenario by checker: expected, and observed where it is another."""
    table = screen.table(
        "scenario", "guard", "claim", *(checker.column for checker in CHECKERS.values()), "outcome",
        title="Verdicts: observed, with (expected) where they differ",
    )  # fmt: skip
    for row in rows:
        cells = [_cell(row, name) for name in CHECKERS]
        good = row["as_expected"]
        last = Text(
            "as published" if good else "NOT AS PUBLISHED", style="green" if good else "red"
        )
        if not row["expected"]:
            last = Text("finding")
        table.add_row(row["scenario"], row["guard"], row["claim"], *cells, last)
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
