"""`fencepost ls`, `show`, `compare` and `rm`: manages the runs in the results folder."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from fencepost.harness.command import screen
from fencepost.harness.command.exits import EXIT
from fencepost.harness.command.options import Results, Run
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.results import run_index
from fencepost.harness.results.batch_index import KINDS, Collected
from fencepost.harness.results.results import must_name_a_folder, root
from fencepost.report.words.questions import verdict
from fencepost.report.words.settings import again, settings
from fencepost.times import seconds

VERDICTS = {"valid": True, "invalid": False, "unknown": "unknown", "none": None}
_SHOWN = 20

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object per line, one for each run.")
]


def ls(
    test: Annotated[
        str, typer.Argument(help="List only the runs of this test. [default: all]")
    ] = "",
    wanted: Annotated[
        str, typer.Option("--verdict", help=f"Only runs with this verdict: {', '.join(VERDICTS)}.")
    ] = "",
    lock: Annotated[str, typer.Option(help="Only runs of this lock.")] = "",
    kind: Annotated[str, typer.Option(help=f"Only runs of this kind: {', '.join(KINDS)}.")] = "",
    newest: Annotated[
        int, typer.Option(min=1, help="The number of runs to list, newest first.")
    ] = _SHOWN,
    as_json: Json = False,
    results: Results = None,
) -> None:
    if test:
        must_name_a_folder(test)
    if wanted:
        choose("verdict", wanted, VERDICTS)
    if kind:
        choose("kind", kind, KINDS)
    found: list[run_index.Stored] = []
    more = 0
    for run in run_index.runs(test):
        if (wanted and run.valid != VERDICTS[wanted]) or (kind and run.kind != kind):
            continue
        if lock and lock not in (run.came.locks if run.came else [run.lock]):
            continue
        if len(found) < newest:
            found.append(run)
        else:
            more += 1
    if as_json:
        for run in found:
            print(json.dumps(run.to_json()))
        return
    if not found:
        screen.write(f"No run in {root()} matches. `fencepost test redis --time 10` starts one.")
        return
    table = screen.table("run", "kind", "verdict", "lock", "faults", "holds", "size", whole=2)
    for run in found:
        faults = "" if run.came else ", ".join(run.faults) or "none"
        table.add_row(
            run.name, run.kind, run.said, run.lock, faults, run_index.words(run.holds),
            run_index.sized(run.size), style=_style(run),
        )  # fmt: skip
    screen.console().print(table)
    if more:
        screen.write(f"{more} more: --newest {len(found) + more} lists them.")


def show(run: Run = "latest", as_json: Json = False, results: Results = None) -> None:
    found = run_index.find(run)
    if as_json:
        known = {"test": dict(found.test), "results": dict(found.results)}
        if found.came is not None:
            known = {"lines": {name: str(line) for name, line in found.came.lines.items()}}
        print(json.dumps(found.to_json() | known))
        return
    screen.write(f"{found.name}: {found.said}")
    if found.came is not None:
        _collected(found.came)
    else:
        _one(found)
    screen.write("")
    for file in sorted(found.folder.iterdir()):
        if file.is_file():
            screen.write(f"  {run_index.sized(file.stat().st_size):>9}  {file}")
    if not found.came and (command := again(found.test, found.folder)):
        screen.write(f"repeat: {command}")


def _collected(came: Collected) -> None:
    table = screen.table("", "result", "", whole=1)
    for name, line in came.lines.items():
        table.add_row(name, line.outcome, line.more)
    screen.console().print(table)


def _one(run: run_index.Stored) -> None:
    table = screen.table("setting", "value", whole=1)
    for label, value in settings(run.test):
        if words := run_index.words(value):
            table.add_row(label, words)
    screen.console().print(table)
    for name, one in (run.results.get("checkers") or {}).items():
        word = screen.word(verdict(one.get("valid")))
        screen.write(f"{name}: {word}. {one.get('summary', '')}")


def compare(
    one: Annotated[str, typer.Argument(help="A run's folder, or TEST, or TEST/TIME.")],
    other: Annotated[str, typer.Argument(help="The run to compare it with.")],
    as_json: Json = False,
    results: Results = None,
) -> int:
    first, second = run_index.find(one), run_index.find(other)
    run_index.must_compare(first, second)
    rows, same = list(run_index.beside(first, second)), run_index.alike(first, second)
    if as_json:
        sides = [[label, mine, its] for label, mine, its in rows]
        print(json.dumps({"runs": [first.name, second.name], "alike": same, "rows": sides}))
        return EXIT[same]
    table = screen.table("", first.name, second.name, whole=1)
    for label, mine, its in rows:
        table.add_row(
            label,
            run_index.words(mine),
            run_index.words(its),
            style=None if mine == its else "bold",
        )
    screen.console().print(table)
    screen.write(f"The results are {'the same' if same else 'different'}.")
    return EXIT[same]


def rm(
    run: Annotated[
        list[str] | None, typer.Argument(help="Runs: their folders, or TEST, or TEST/TIME.")
    ] = None,
    older: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Remove runs older than this (for example: 168h)."),
    ] = None,
    keep: Annotated[
        int | None, typer.Option(min=0, help="Keep this number of newest runs of each test.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    results: Results = None,
) -> None:
    if not run and older is None and keep is None:
        raise BadArguments("rm needs the names of runs, --older TIME or --keep N")
    if run and (older is not None or keep is not None):
        raise BadArguments("names of runs cannot be combined with --older or --keep: use one")
    folders = [run_index.find(name).folder for name in run or ()]
    if not run:
        old = _old(older, keep)
        if not old:
            screen.write("No run matches.")
            return
        all_of_them = run_index.sized(sum(one.size for one in old))
        folders = [one.folder for one in old]
        if not yes and not typer.confirm(f"Remove {len(old)} runs, {all_of_them}, from {root()}?"):
            return
    run_index.remove(folders)
    for folder in folders:
        screen.write(f"removed {folder.parent.name}/{folder.name}")


def _old(older: str | None, keep: int | None) -> list[run_index.Stored]:
    """Return the runs older than `older` that are not among the `keep` newest of their test.

    Runs in progress are never among them.
    """
    before = datetime.now(UTC)
    if older is not None:
        try:
            before -= timedelta(seconds=seconds(older))
        except ValueError as error:
            raise BadArguments(f"older: {error}") from error
    seen: dict[Path, int] = {}
    found = []
    for one in run_index.runs():
        place = seen[one.folder.parent] = seen.get(one.folder.parent, 0) + 1
        if one.began < before and place > (keep or 0) and not one.live:
            found.append(one)
    return found


def _style(run: run_index.Stored) -> str | None:
    return None if run.live or run.valid is None else screen.STYLE[run.valid]
