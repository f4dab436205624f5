"""`fencepost sdk`: writes the SDK for clients in another language, a single file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fencepost.harness.command import screen
from fencepost.harness.errors import BadArguments, Crashed, choose
from fencepost.harness.package import PACKAGE

FILES = {
    "csharp": "Fencepost.cs",
    "go": "fencepost.go",
    "java": "Fencepost.java",
    "javascript": "fencepost.js",
    "python": "fencepost_sdk.py",
    "rust": "fencepost.rs",
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
            raise BadArguments(f"{file} exists with other content: move it away first")
        to.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as error:
        raise Crashed(f"cannot write {file}: {error.strerror}") from error
    screen.write(f"wrote {file}: its first lines explain its use, docs/your-lock.md has an example")
