"""`fencepost ls`, `show`, `compare` and `rm`: the runs in the results folder."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from fencepost.harness.command import screen
from fencepost.harness.command.exits import EXIT
from fencepost.harness.command.options import Results, Run
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.run import store
from fencepost.harness.run.results import find, must_name_a_folder, root
from fencepost.report.settings import again, settings
from fencepost.times import seconds

VERDICTS = {"valid": True, "invalid": False, "unknown": "unknown", "none": None}
_SHOWN = 20

Json = Annotated[
    bool, typer.Option("--json", help="Print a JSON object for each run, a line each.")
]


def ls(
    test: Annotated[str, typer.Argument(help="The runs of this test alone. [default: all]")] = "",
    wanted: Annotated[
        str, typer.Option("--verdict", help=f"Those that came out so: {', '.join(VERDICTS)}.")
    ] = "",
    lock: Annotated[str, typer.Option(help="Those of this lock.")] = "",
    newest: Annotated[int, typer.Option(min=1, help="How many to list, the newest.")] = _SHOWN,
    as_json: Json = False,
    results: Results = None,
) -> None:
    if test:
        must_name_a_folder(test)
    if wanted:
        choose("verdict", wanted, VERDICTS)
    found: list[store.Stored] = []
    more = 0
    for run in store.runs(test):
        if (wanted and run.valid != VERDICTS[wanted]) or (lock and _lock(run) != lock):
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
        screen.write(f"{root()} has no such run: `fencepost test redis --time 10` makes one.")
        return
    table = screen.table("run", "verdict", "lock", "faults", "holds", "size", whole=1)
    for run in found:
        holds = (run.results.get("stats") or {}).get("holds", "")
        table.add_row(
            run.name, _said(run), _lock(run), ", ".join(run.faults) or "none", str(holds),
            _bytes(run.size), style=_style(run),
        )  # fmt: skip
    screen.console().print(table)
    if more:
        screen.write(f"{more} more: --newest {len(found) + more} lists them.")


def show(run: Run = "latest", as_json: Json = False, results: Results = None) -> None:
    folder = find(run)
    found = store.stored(folder, f"{folder.parent.name}/{folder.name}")
    if as_json:
        known = {"test": dict(found.test), "results": dict(found.results)}
        print(json.dumps(found.to_json() | known))
        return
    screen.write(f"{found.name}: {_said(found)}")
    table = screen.table("setting", "value", whole=1)
    for label, value in settings(found.test):
        if words := _words(value):
            table.add_row(label, words)
    screen.console().print(table)
    for name, one in (found.results.get("checkers") or {}).items():
        said = screen.word(one.get("valid", "unknown"))
        screen.write(f"{name}: {said}. {one.get('summary', '')}")
    screen.write("")
    for file in sorted(folder.iterdir()):
        if file.is_file():
            screen.write(f"  {_bytes(file.stat().st_size):>9}  {file}")
    if command := again(found.test, folder):
        screen.write(f"again: {command}")


def compare(
    one: Annotated[str, typer.Argument(help="A run's folder, or TEST, or TEST/TIME.")],
    other: Annotated[str, typer.Argument(help="The run beside it.")],
    results: Results = None,
) -> int:
    folders = [find(name) for name in (one, other)]
    first, second = (store.stored(at, f"{at.parent.name}/{at.name}") for at in folders)
    for run in (first, second):
        if run.problem or run.valid is None:
            raise BadArguments(f"{run.name} cannot be compared: {_said(run)}")
    table = screen.table("", first.name, second.name, whole=1)
    for label, mine, its in store.beside(first, second):
        table.add_row(label, _words(mine), _words(its), style=None if mine == its else "bold")
    screen.console().print(table)
    same = store.alike(first, second)
    screen.write(f"They came out {'alike' if same else 'differently'}.")
    return EXIT[same]


def rm(
    run: Annotated[
        list[str] | None, typer.Argument(help="Runs: their folders, or TEST, or TEST/TIME.")
    ] = None,
    older: Annotated[
        str | None, typer.Option(metavar="TIME", help="Those that began so long ago: 168h, say.")
    ] = None,
    keep: Annotated[
        int | None, typer.Option(min=0, help="All but so many of each test, the newest.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    results: Results = None,
) -> None:
    if not run and older is None and keep is None:
        raise BadArguments("rm what? Name runs, or say --older TIME or --keep N")
    if run and (older is not None or keep is not None):
        raise BadArguments("rm takes the names of runs, or --older and --keep, not both")
    folders = [find(name) for name in run or ()]
    if not run:
        old = _old(older, keep)
        if not old:
            screen.write("No run is as old as that.")
            return
        size = _bytes(sum(one.size for one in old))
        folders = [one.folder for one in old]
        if not yes and not typer.confirm(f"Remove {len(old)} runs, {size}, from {root()}?"):
            return
    store.remove(folders)
    for folder in folders:
        screen.write(f"removed {folder.parent.name}/{folder.name}")


def _old(older: str | None, keep: int | None) -> list[store.Stored]:
    """The runs that are both older than that and beyond the newest so many of their test. One that
    goes on is not among them."""
    before = datetime.now(UTC)
    if older is not None:
        try:
            before -= timedelta(seconds=seconds(older))
        except ValueError as error:
            raise BadArguments(f"older: {error}") from error
    seen: dict[Path, int] = {}
    found = []
    for one in store.runs():
        place = seen[one.folder.parent] = seen.get(one.folder.parent, 0) + 1
        if one.began < before and place > (keep or 0) and not one.live:
            found.append(one)
    return found


def _lock(run: store.Stored) -> str:
    return str((run.test.get("lock") or {}).get("name") or "")


def _said(run: store.Stored) -> str:
    if run.live:
        return "running" + (f", broken: {', '.join(run.broken)}" if run.broken else "")
    if run.problem:
        return run.problem
    if run.valid is None:
        return "not judged"
    return " ".join([screen.word(run.valid), ", ".join(run.broken)]).strip()


def _style(run: store.Stored) -> str | None:
    return None if run.live or run.valid is None else screen.STYLE[run.valid]


def _words(value: Any) -> str:
    match value:
        case None:
            return ""
        case {"name": name, **more}:
            return ", ".join(filter(None, (str(name), _words(more))))
        case dict():
            said = {key: _words(one) for key, one in value.items()}
            return ", ".join(f"{key} {words}" for key, words in said.items() if words)
        case list():
            return ", ".join(str(one) for one in value)
        case bool():
            return "yes" if value else "no"
    return str(value)


def _bytes(size: int) -> str:
    amount, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
