"""Intervals match the published ones, and a literal calculation from the definition."""

from __future__ import annotations

from fractions import Fraction
from math import comb, inf

import pytest

from fencepost.report.words.intervals import median, not_seen, share


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [
        # Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in
        # Medicine 17 (1998), table I, method 5 (Clopper-Pearson).
        (81, 263, 0.2527, 0.3676),
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0000, 0.1684),
        (1, 29, 0.0009, 0.1776),
    ],
)
def test_limits_of_a_share_are_those_that_newcombe_published(count, of, low, high):
    assert share(count, of) == pytest.approx((low, high), abs=0.00005)


def tail(count, of, p):
    """Return the probability of `count` or more of `of`, added up."""
    return sum(comb(of, k) * p**k * (1 - p) ** (of - k) for k in range(count, of + 1))


@pytest.mark.parametrize("of", [1, 2, 7, 40, 200])
def test_at_each_limit_as_much_or_more_has_a_chance_of_one_in_forty(of):
    for count in {0, 1, of // 3, of // 2, of - 1, of}:
        low, high = (Fraction(limit) for limit in share(count, of))
        assert low <= Fraction(count, of) <= high
        if count:
            assert float(tail(count, of, low)) == pytest.approx(0.025, rel=1e-9)
        if count < of:
            assert float(1 - tail(count + 1, of, high)) == pytest.approx(0.025, rel=1e-9)


def test_a_share_of_a_great_many_is_found_as_well():
    low, high = share(50_000, 1_000_000)
    # The normal approximation, which is good there: 1.96 standard deviations of 0.000218.
    assert (low, high) == pytest.approx((0.049573, 0.050429), abs=2e-6)
    assert share(0, 1_000_000)[1] == pytest.approx(3.689e-6, rel=1e-3)


def test_of_nothing_any_share_is_possible():
    assert share(0, 0) == (0, 1)
    assert not_seen(0) == 1


@pytest.mark.parametrize(("count", "of"), [(-1, 3), (4, 3)])
def test_a_value_that_is_no_count_is_refused(count, of):
    with pytest.raises(ValueError, match="is not a proportion"):
        share(count, of)


def test_an_event_that_was_never_seen_may_have_a_rate_of_three_in_as_many():
    assert not_seen(1500) == 0.002
    assert not_seen(2) == 1
    # The exact bound, which three in as many approximates.
    assert not_seen(300) == pytest.approx(1 - 0.05 ** (1 / 300), rel=0.01)


def test_the_median_of_few_has_no_limits():
    assert median([3.0]) == (3, 0, inf)
    assert median([1.0, 2.0, 4.0, 9.0]) == (3, 0, inf)


def test_the_limits_of_a_median_are_the_ordered_values_that_cover_it():
    # Conover's table: of 6 values the outermost, of 10 the second ones, of 20 the sixth ones.
    for count, rank in ((6, 1), (8, 1), (9, 2), (10, 2), (20, 6)):
        values = [float(value) for value in range(1, count + 1)]
        assert median(values) == ((count + 1) / 2, rank, count + 1 - rank)


def test_an_event_that_most_runs_never_saw_has_no_median():
    assert median([1.0, inf, inf]) == (inf, 0, inf)
    assert median([1.0, 2.0, inf]) == (2, 0, inf)
