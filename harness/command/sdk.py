"""`fencepost sdk`: the file by which a client in another language speaks to fencepost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fencepost.harness.command import screen
from fencepost.harness.errors import BadArguments, Crashed, choose
from fencepost.harness.package import PACKAGE

FILES = {
    "go": "fencepost.go",
    "java": "Fencepost.java",
    "javascript": "fencepost.js",
    "python": "fencepost_sdk.py",
}


def sdk(
    language: Annotated[str, typer.Argument(help=f"One of {', '.join(FILES)}.")],
    to: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write it to.")] = Path(),
) -> None:
    name = FILES[choose("SDK for", language, FILES)]
    content = (PACKAGE / "sdk" / language / name).read_bytes()
    file = to / name
    try:
        if file.exists() and file.read_bytes() != content:
            raise BadArguments(f"{file} is there, and is another: move it away first")
        to.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as error:
        raise Crashed(f"{file} cannot be written: {error.strerror}") from error
    screen.write(f"{file}: its first lines say how it is used, docs/your-lock.md shows a whole one")
