"""The bounds of a node's clock come from test.json."""

from __future__ import annotations

import pytest

from fencepost.checker.facts.clocks import Clocks


@pytest.mark.parametrize(
    ("told", "bound"),
    [({"bound_ns": 5, "error_ns": 7}, 5), ({"error_ns": 7}, 7), ({"offset_ns": 3}, 0)],
)
def test_a_clock_that_says_no_bound_says_its_error_or_has_none(told, bound):
    clocks = Clocks({"clocks": {"client-1": told}})
    assert clocks.bound("client-1") == bound
    assert bool(clocks) is (bound > 0)
