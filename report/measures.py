"""How long acquires took: each answer, quantiles over time, and of the whole run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.checker.history import History

OUTCOMES = ("ok", "fail", "info")
QUANTILES = (50, 95, 99)
"""Per cent of the acquires that took no longer."""
WINDOWS = 30
"""Spans of the run, at most, for each of which quantiles are computed."""
FEWEST = 20
"""Acquires a span should have: a quantile of fewer says nothing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An acquire that was answered: when (s since the test's start), after how long, and how."""

    time_s: float
    latency_ms: float
    what: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The acquires of one outcome: how many, QUANTILES of their latency in ms, and the longest."""

    what: str
    count: int
    quantiles: tuple[float, ...]
    longest: float


def acquires(history: History) -> list[Answer]:
    """Every acquire that was answered, in the order of asking."""
    return [
        Answer(call.end.time / 1e9, (call.end.time - call.begin.time) / 1e6, call.type)
        for call in history.calls()
        if call.begin.f == "acquire" and call.end
    ]


def quantiles(values: Sequence[float]) -> tuple[float, ...]:
    """QUANTILES of some values, at least one; between two of them, in proportion."""
    if len(values) == 1:
        return tuple(values[0] for _ in QUANTILES)
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return tuple(cuts[percent - 1] for percent in QUANTILES)


def windows(answers: Sequence[Answer], end_s: float) -> list[tuple[float, tuple[float, ...]]]:
    """The latency of granted acquires over time: the middle of each window (s), its quantiles.

    Windows in which nothing was granted are left out; a run with few grants has no windows.
    """
    granted = [answer for answer in answers if answer.what == "ok"]
    count = min(WINDOWS, len(granted) // FEWEST)
    if count < 2:
        return []
    width = max(end_s, 1e-9) / count
    latencies: list[list[float]] = [[] for _ in range(count)]
    for answer in granted:
        latencies[min(int(answer.time_s / width), count - 1)].append(answer.latency_ms)
    return [
        ((number + 0.5) * width, quantiles(found))
        for number, found in enumerate(latencies)
        if found
    ]


def summary(answers: Sequence[Answer]) -> list[Summary]:
    """A row for each outcome that there was."""
    rows = []
    for what in OUTCOMES:
        found = [answer.latency_ms for answer in answers if answer.what == what]
        if found:
            rows.append(Summary(what, len(found), quantiles(found), max(found)))
    return rows
