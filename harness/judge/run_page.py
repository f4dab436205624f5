"""Writes the page of a run, in the colours of the fault families."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fencepost.checker.history.history import History
from fencepost.nemesis.families import FAMILIES
from fencepost.report.pages import run as report


def write_report(
    folder: Path, history: History | None = None, found: dict[str, Any] | None = None
) -> Path:
    """Write report.html into the folder of a run; return its path.

    `history` and `found`, its results, are read from there unless given.
    """
    return report.render(folder, _colour, history, found)


def _colour(family: str) -> tuple[str, str] | None:
    found = FAMILIES.get(family)
    return (found.colour.light, found.colour.dark) if found else None
