"""`fencepost register`: the defects that scripts show, and which of them concern a project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fencepost.harness.command import screen
from fencepost.harness.command.exits import EXIT
from fencepost.harness.errors import Crashed
from fencepost.workloads.scenarios.register import pins
from fencepost.workloads.scenarios.register.row import listed
from fencepost.workloads.scenarios.register.rows import NOT_SHOWN, ROWS


def register(
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Only rows that concern the versions in this requirements.txt, uv.lock, "
            "poetry.lock, pylock.toml, package-lock.json or go.mod; exit 1 if there is one.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    if check is not None:
        return _check(check, as_json)
    if as_json:
        print(json.dumps(listed(ROWS, NOT_SHOWN)))
        return EXIT[True]
    table = screen.table("row", "software", "versions", "mended", "impact", "shown", whole=1)
    for row in ROWS:
        shown = f"{row.runs.shown} of {row.runs.of}"
        versions = ", ".join(row.versions)
        table.add_row(row.name, row.software, versions, row.mended or "open", row.impact, shown)
    screen.console().print(table)
    screen.say(f"{len(NOT_SHOWN)} candidates are not shown: docs/register.md")
    return EXIT[True]


def _check(file: Path, as_json: bool) -> int:
    try:
        pinned = pins.read(file)
    except pins.Unreadable as error:
        raise Crashed(str(error)) from error
    found = pins.concerned(pinned, ROWS)
    if as_json:
        rows = [
            {"package": pin.package, "version": pin.version, "row": row.name} for pin, row in found
        ]
        print(json.dumps({"packages": len(pinned), "rows": rows}))
    else:
        for pin, row in found:
            version = pin.version or "(no version pinned)"
            screen.write(f"{pin.package} {version}: {row.name}, {row.impact}: {row.title}")
        screen.write(_ending(file, len(pinned), len({row.name for _, row in found})))
    return EXIT[not found]


def _ending(file: Path, packages: int, rows: int) -> str:
    of = f"{file} ({packages} package{'' if packages == 1 else 's'})"
    if not rows:
        return f"no row of the register concerns {of}"
    those = (
        "1 row of the register concerns" if rows == 1 else f"{rows} rows of the register concern"
    )
    return f"{those} {of}. `fencepost reproduce ROW` writes a script that shows one"
