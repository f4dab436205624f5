"""`fencepost site`: writes the results folder as a static site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fencepost.harness.command import screen
from fencepost.harness.command.options import Results
from fencepost.harness.errors import BadArguments
from fencepost.harness.publish import publish
from fencepost.harness.results.results import root


def site(
    to: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder to write to, or a site to replace.")
    ],
    docs: Annotated[
        Path, typer.Option(metavar="DIR", help="A folder of Markdown documents to add as pages.")
    ] = Path("docs"),
    most: Annotated[
        int, typer.Option(metavar="MB", min=2, help="The maximum size of the site.")
    ] = publish.MOST_BYTES // 1_000_000,
    results: Results = None,
) -> None:
    if not root().is_dir():
        raise BadArguments(f"the results folder {root()} does not exist: name one with --results")
    index = publish.build(to, docs, most * 1_000_000, screen.say)
    screen.write(f"site: {index}")
