"""Run `fencepost-node` of this checkout on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from fencepost.node.places import PROGRAM, PROGRAM_PATH

_SOURCE = Path(__file__).parents[1] / "src"


def node_program(python: str = sys.executable, *options: str) -> list[str]:
    """Return the words that replace `fencepost-node`."""
    code = (
        f"import sys; sys.path.insert(0, {str(_SOURCE)!r}); "
        "from fencepost.node.command import main; main()"
    )
    return [python, *options, "-c", code]


def here(command: Iterable[str]) -> list[str]:
    """Return a node's command as it can run here."""
    return [
        word
        for given in command
        for word in (node_program() if given in (PROGRAM, PROGRAM_PATH) else [given])
    ]
