"""`fencepost init`: creates a project with an example lock."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fencepost.harness.command import screen
from fencepost.harness.userlock.project import begin


def init(
    folder: Annotated[Path, typer.Argument(help="The folder to write to.")] = Path(),
    asyncio: Annotated[
        bool, typer.Option("--asyncio", help="Write a lock whose methods are coroutines.")
    ] = False,
) -> None:
    written, existing = begin(folder, asyncio)
    for path in written:
        screen.write(f"wrote {path}")
    for path in existing:
        screen.write(f"kept {path}, which exists already")
    if written:
        change = "" if folder == Path() else f"cd {folder}; "
        screen.write(f"Next: {change}fencepost check, then fencepost test")
