"""Exact 95 % intervals of counts, which an honest table of results needs.

- Of a proportion (violating holds of all holds): Clopper and Pearson, "The use of confidence or
  fiducial limits illustrated in the case of the binomial", Biometrika 26 (1934). It covers at
  least 95 %, also where little or nothing was seen.
- Of an event that was never seen: the rule of three (Hanley and Lippman-Hand, "If nothing goes
  wrong, is everything all right?", JAMA 249 (1983)).
- Of a median: two of the ordered values, by the binomial distribution of how many lie below it
  (Conover, "Practical Nonparametric Statistics", 3.2), which assumes nothing about their
  distribution.

The limits of a proportion are quantiles of the beta distribution. They are found by bisection of
its cumulative distribution, the continued fraction of Abramowitz and Stegun 26.5.8, evaluated from
the front as Lentz did ("Numerical Recipes", 6.4). SciPy has the same, but is a dependency of 100
MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import comb, exp, inf, lgamma, log, log1p
from typing import Any

OUTSIDE = 0.05
"""The part of the distribution outside a 95 % interval, half of it on each side."""
_STEPS, _TERMS = 60, 10_000
_CLOSE, _TINY = 1e-14, 1e-300


@cache
def share(count: int, of: int) -> tuple[float, float]:
    """Return the limits of a proportion, with `count` of `of` seen. With `of` 0 it may be any.

    Results are cached, because a matrix recomputes all its cells after each run.

    Raises ValueError for impossible counts.
    """
    if not 0 <= count <= of:
        raise ValueError(f"{count} of {of} is not a proportion")
    if not of:
        return 0.0, 1.0
    low = _quantile(OUTSIDE / 2, count, of - count + 1) if count else 0.0
    high = _quantile(1 - OUTSIDE / 2, count + 1, of - count) if count < of else 1.0
    return low, high


def not_seen(of: int) -> float:
    """Return the upper 95 % bound on the proportion of an event not seen in n tries: 3 / n."""
    return min(1.0, 3 / of) if of else 1.0


def summed(runs: Iterable[Mapping[str, Sequence[int]]]) -> dict[str, dict[str, Any]]:
    """What was counted in all these runs, by name: how often, of how many, with the interval."""
    totals: dict[str, tuple[int, int]] = {}
    for run in runs:
        for name, (count, of) in run.items():
            before = totals.get(name, (0, 0))
            totals[name] = (before[0] + count, before[1] + of)
    found = {}
    for name, (count, of) in totals.items():
        low, high = share(count, of)
        found[name] = {"count": count, "of": of, "low": low, "high": high}
    return found


def median(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median of some values, at least one, and its limits. A value censored at the end
    of a run is `inf`; with five values or less the limits are 0 and inf."""
    ordered = sorted(values)
    count = len(ordered)
    low, high = ordered[(count - 1) // 2], ordered[count // 2]
    middle = low if low == high else (low + high) / 2
    below, rank = 0.0, 0
    while (below := below + comb(count, rank) / 2**count) <= OUTSIDE / 2:
        rank += 1
    if not rank:
        return middle, 0.0, inf
    return middle, ordered[rank - 1], ordered[count - rank]


def _quantile(share: float, a: float, b: float) -> float:
    """Return the point below which the beta distribution has this share."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _below(middle, a, b) < share else (low, middle)
    return (low + high) / 2


def _below(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function: the share of beta(a, b) below x, 0 < x <
    1."""
    factor = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    # The fraction converges quickly on this side of the mean.
    if x < (a + 1) / (a + b + 2):
        return factor * _fraction(x, a, b) / a
    return 1 - factor * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            found *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return found


def _not_zero(x: float) -> float:
    return x if abs(x) > _TINY else _TINY
