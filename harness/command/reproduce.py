"""`fencepost reproduce`: writes the script of a row of the register, and the text of an issue."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fencepost.harness.command import screen
from fencepost.harness.errors import BadArguments, Crashed, choose
from fencepost.workloads.scenarios.register import issue, standalone
from fencepost.workloads.scenarios.register.rows import ROWS


def reproduce(
    row: Annotated[str, typer.Argument(help="A row of `fencepost register`.")],
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The script. The issue has its name, with .md."),
    ] = None,
) -> None:
    known = {one.name: one for one in ROWS}
    found = known[choose("row", row, known, "fencepost register")]
    file = to or Path(found.script.name)
    said = file.with_suffix(".md")
    if said == file:
        raise BadArguments(f"{file} is the issue's name: name a script, such as {row}.py")
    _write(file, standalone.text(found.script))
    _write(said, issue.text(found, file.name))
    screen.write(f"wrote {file}, which exits with 1 where the defect shows, and {said}")


def _write(file: Path, content: str) -> None:
    try:
        if file.exists() and file.read_text(encoding="utf-8", errors="replace") != content:
            raise BadArguments(f"{file} exists with other content: move it away first")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    except OSError as error:
        raise Crashed(f"cannot write {file}: {error.strerror}") from error
