"""`fencepost init`: a project of one's own to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fencepost.harness.command import screen
from fencepost.harness.userlock.project import begin


def init(
    folder: Annotated[Path, typer.Argument(help="Where to write.")] = Path(),
) -> None:
    written, kept = begin(folder)
    for path in written:
        screen.write(f"wrote {path}")
    for path in kept:
        screen.write(f"kept {path}, which is there already")
    if written:
        there = "" if folder == Path() else f"cd {folder}; "
        screen.write(f"Next: {there}fencepost check, then fencepost test")
