"""Data of the charts: latencies and rates, as plain tables.

The browser draws them over the same span as the timeline. Tokens are in the timeline's own tables,
with the holds and writes that carried them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log10
from typing import Any

from fencepost.report.figures.focus import WHOLE, Focus
from fencepost.report.figures.grid import Grid
from fencepost.report.figures.measures import QUANTILES, Answers, windows
from fencepost.report.figures.rates import Rates
from fencepost.report.figures.table import table, us

EACH = 20_000
"""Largest number of acquires in focus that have a dot each."""
_DECADES = 11  # from a µs to a day


def latencies(answers: Answers, end_ns: int, focus: Focus = WHOLE) -> dict[str, Any]:
    """Collect the answers in focus with their latencies in µs, a sample of the others, and
    quantiles of the granted ones over time."""
    return {
        "acquires": table(("time", "latency", "what"), _dots(answers, end_ns, focus)),
        "quantiles": table(
            ("time", *(f"p{percent}" for percent in QUANTILES)),
            ((us(time), *map(us, found)) for time, found in windows(answers, end_ns)),
        ),
    }


def rates(found: Rates) -> dict[str, Any]:
    """Count the ops invoked and holds granted per second, in spans of the run."""
    rows = (
        (us(start), us(end), round(ops, 3), round(grants, 3)) for start, end, ops, grants in found
    )
    return {"rates": table(("start", "until", "ops", "holds"), rows)}


def _dots(answers: Answers, end_ns: int, focus: Focus) -> Iterator[tuple[Any, ...]]:
    grid, room = Grid(end_ns, 0, _DECADES), EACH
    for time, took, what in answers:
        shown = room > 0 and focus.shows(time)
        room -= shown
        if shown or grid.takes(time, log10(max(took / 1000, 1)), what):
            yield us(time), us(took), what


def has_tokens(tables: dict[str, Any]) -> bool:
    """Return whether any grant or write of a timeline carried a token."""
    return any(
        row[tables[name]["columns"].index("token")] is not None
        for name in ("holds", "writes", "tokens")
        for row in tables[name]["rows"]
    )
