"""Latency of acquires: each answer, quantiles over time, and quantiles of the whole run."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

OUTCOMES = ("ok", "fail", "info")
QUANTILES = (50, 95, 99)
"""Percentiles of latency that are computed."""
WINDOWS = 30
"""Largest number of windows for which quantiles are computed."""
FEWEST = 20
"""Fewest acquires in a window; a quantile of fewer has no meaning."""

_MOST = 2**63 - 1


class Answers:
    """The answered acquires, in the order of their answers.

    Three columns: the time of the answer (ns since the test's start), the latency (ns) and the
    result. Columns of numbers, because a long run has millions.
    """

    def __init__(self) -> None:
        self._times, self._took, self._what = array("q"), array("q"), array("b")

    def add(self, time_ns: int, took_ns: int, what: str) -> None:
        self._times.append(time_ns)
        self._took.append(min(took_ns, _MOST))
        self._what.append(OUTCOMES.index(what))

    def __len__(self) -> int:
        return len(self._times)

    def __iter__(self) -> Iterator[tuple[int, int, str]]:
        names = (OUTCOMES[what] for what in self._what)
        return zip(self._times, self._took, names, strict=True)


@dataclass(frozen=True, slots=True)
class Summary:
    """The acquires with one result: their number, QUANTILES of their latency in ms, and the
    longest."""

    what: str
    count: int
    quantiles: tuple[float, ...]
    longest: float


def quantiles(values: Sequence[float]) -> tuple[float, ...]:
    """Return QUANTILES of some values, at least one, interpolated linearly."""
    ordered = sorted(values)
    found = []
    for percent in QUANTILES:
        place, rest = divmod((len(ordered) - 1) * percent, 100)
        after = ordered[min(place + 1, len(ordered) - 1)]
        found.append(ordered[place] + (after - ordered[place]) * rest / 100)
    return tuple(found)


def windows(answers: Answers, end_ns: int) -> list[tuple[float, tuple[float, ...]]]:
    """Return the latency of granted acquires over time: the middle of each window (ns), and its
    quantiles in ns.

    Windows without a grant are left out; a run with few grants has no windows.
    """
    granted = sum(1 for _, _, what in answers if what == "ok")
    count = min(WINDOWS, granted // FEWEST)
    if count < 2:
        return []
    width = max(end_ns, 1) / count
    latencies = [array("q") for _ in range(count)]
    for time, took, what in answers:
        if what == "ok":
            latencies[min(int(time / width), count - 1)].append(took)
    return [
        ((number + 0.5) * width, quantiles(found))
        for number, found in enumerate(latencies)
        if found
    ]


def summary(answers: Answers) -> list[Summary]:
    """Return a row for each result that occurred."""
    rows = []
    for one in OUTCOMES:
        found = array("q", (took for _, took, what in answers if what == one))
        if found:
            in_ms = tuple(took / 1e6 for took in quantiles(found))
            rows.append(Summary(one, len(found), in_ms, max(found) / 1e6))
    return rows
