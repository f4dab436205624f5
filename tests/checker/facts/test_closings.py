"""When a client had closed after a call. Times are in ms."""

from __future__ import annotations

import pytest

from fencepost.checker.facts.closings import Closings
from fencepost.checker.facts.ends import FOREVER
from tests.histories import MS


def test_it_is_the_first_close_that_began_after_the_call(story):
    for at in (10, 40, 60):
        story.call(1, "close", at, at + 10, {})
    story.call(1, "acquire", 30, 31, {"lock": "orders"}, type="fail", error=["unreachable", "-"])
    story.call(2, "close", 32, 33, {})
    call = next(one for one in story.history().calls() if one.begin.f == "acquire")
    assert Closings(story.history()).after(call) == 50 * MS


@pytest.mark.parametrize("type", ["info", "ok"])
def test_only_a_close_that_was_answered_ok_is_one(story, type):
    story.call(1, "acquire", 30, 31, {"lock": "orders"}, type="fail", error=["unreachable", "-"])
    error = ["raised", "-"] if type == "info" else None
    story.call(1, "close", 40, 50, {}, type=type, error=error)
    (call, _) = story.history().calls()
    assert Closings(story.history()).after(call) == (50 * MS if type == "ok" else FOREVER)


def test_a_client_that_was_seen_dead_has_closed(story):
    story.call(1, "acquire", 30, None, {"lock": "orders"})
    story.fault("kill", 100, 200, ["client-1"], processes=[1])
    (call,) = story.history().calls()
    assert Closings(story.history()).after(call) < FOREVER
