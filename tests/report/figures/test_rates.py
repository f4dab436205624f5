"""Ops and grants a second, over time."""

from __future__ import annotations

import pytest

from fencepost.report.figures.rates import SPANS, Rates

S = 1_000_000_000


def test_the_events_of_a_span_are_divided_by_its_length():
    rates = Rates(SPANS * S * 2)
    for time in (0, S, 2 * S, 2 * SPANS * S):
        rates.op(time)
    rates.grant(3 * S)
    found = list(rates)
    assert len(found) == SPANS
    assert found[0] == pytest.approx((0, 2 * S, 1.0, 0.0))
    assert found[1] == pytest.approx((2 * S, 4 * S, 0.5, 0.5))
    assert found[-1][2] == pytest.approx(0.5)


def test_a_run_without_length_has_one_span():
    assert len(list(Rates(0))) == 1
