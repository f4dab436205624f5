"""The bounds of a node's clock come from test.json."""

from __future__ import annotations

import pytest

from fencepost.checker.facts.clocks import Clocks


@pytest.mark.parametrize(
    ("told", "bound"),
    [({"bound_ns": 5, "error_ns": 7}, 5), ({"error_ns": 7}, 7), ({"offset_ns": 3}, 0)],
)
def test_a_clock_without_a_bound_reports_its_error_or_is_unbounded(told, bound):
    clocks = Clocks({"clocks": {"client-1": told}})
    assert clocks.bound("client-1") == bound
    assert bool(clocks) is (bound > 0)
