"""Decide from measurements whether a run leaves anything or grows, and make a table of them.

There are two sorts. Counts (file handles, containers) must be the same at the end as at the start:
one that is left by each run is one too many. Weights (memory, bytes) are never exactly the same, so
their growth a run has a bound.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Sample = Mapping[str, float]
"""One measurement: amounts by name."""


@dataclass(frozen=True)
class Bound:
    """How much an amount may grow from one sample to the next, and why so much."""

    most: float
    why: str


@dataclass(frozen=True)
class Row:
    """One amount over a series.

    `slope` is that of a line through the second half, by sample, and None for counts. `wrong` is
    the reason why the amount is wrong; empty if it is right.
    """

    name: str
    first: float
    last: float
    worst: float
    slope: float | None
    wrong: str


def judge(series: Sequence[Sample], round_: int, bounds: Mapping[str, Bound]) -> list[Row]:
    """Return the amounts of a series, in which each `round_` samples repeat the same runs.

    The first round imports modules. So counts are compared after the first and the last whole
    round. Caches and the allocator's heaps take longer to fill, so weights have their slope over
    the second half. An amount without a bound is a count. One that a sample does not name is 0
    there.

    Raises:
        ValueError: the series has less than two whole rounds.
    """
    if len(series) < 2 * round_:
        raise ValueError(f"{len(series)} samples are less than two rounds of {round_}")
    first = round_ - 1
    last = len(series) // round_ * round_ - 1
    names = dict.fromkeys(name for sample in series for name in sample)
    return [
        _row(name, [one.get(name, 0) for one in series[first:]], last - first, bounds.get(name))
        for name in names
    ]


def _row(name: str, amounts: Sequence[float], last: int, bound: Bound | None) -> Row:
    ends = amounts[0], amounts[last], max(amounts)
    if bound is None:
        wrong = "" if ends[0] == ends[1] else f"{ends[1] - ends[0]:+g} from first to last"
        return Row(name, *ends, None, wrong)
    slope = growth(amounts[len(amounts) // 2 :])
    wrong = "" if slope <= bound.most else f"more than {bound.most:g} a run: {bound.why}"
    return Row(name, *ends, slope, wrong)


def growth(amounts: Sequence[float], places: Sequence[float] | None = None) -> float:
    """Return the slope of the line through these amounts, by sample or by `places`.

    It is the median of the slopes of all pairs (Theil and Sen): one sample that is off, a run with
    a longer history, moves it little.
    """
    at = places if places is not None else range(len(amounts))
    thinned = list(zip(at, amounts, strict=True))[:: max(1, len(amounts) // 400)]
    slopes = [
        (later - earlier) / (end - begin)
        for number, (begin, earlier) in enumerate(thinned)
        for end, later in thinned[number + 1 :]
        if end > begin
    ]
    return statistics.median(slopes) if slopes else 0.0


def table(rows: Sequence[Row]) -> list[str]:
    """Return the rows as lines for a person."""
    width = max((len(row.name) for row in rows), default=0)
    lines = [f"{'':{width}}{'first':>12}{'last':>12}{'worst':>12}{'a run':>12}"]
    for row in rows:
        slope = "" if row.slope is None else f"{row.slope:+.4g}"
        amounts = "".join(f"{one:>12.6g}" for one in (row.first, row.last, row.worst))
        wrong = f"  NOT THE SAME: {row.wrong}" if row.wrong else ""
        lines.append(f"{row.name:{width}}{amounts}{slope:>12}{wrong}")
    return lines
