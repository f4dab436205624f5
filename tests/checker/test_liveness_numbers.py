"""What liveness tells beyond its verdict, and the facts of a run that it takes into account."""

from __future__ import annotations

import pytest

from tests.checker.liveness_stories import (
    MINORITY,
    SERVERS,
    asks,
    asks_in_vain,
    cut,
    dies_with_the_lock,
    limits,
    verdict,
)
from tests.histories import MS

REFUSALS = {"promises": {"true_refusals": True}}


@pytest.mark.parametrize(
    ("servers", "way", "valid"),
    [
        (1, "lease", False),
        (2, "lease", True),
        (5, "lease", True),
        (5, "connection", False),
    ],
)
def test_a_release_during_a_fault_may_not_reach_all_of_several_servers(story, servers, way, valid):
    """If they agree among themselves, or are one, the answer shows that it did."""
    story.grant(1, "h1", at=0, until=10_000, ttl=10_000)
    story.release(1, "h1", at=200, done=210)
    cut(story, 100, 300, SERVERS[0])
    asks(story, 1000, 4000)
    lock = {"name": "mine", "ends_with": way}
    assert verdict(story, servers=SERVERS[:servers], lock=lock).valid == valid


@pytest.mark.parametrize(("down", "tested"), [(2, True), (3, False), (4, False)])
def test_only_a_minority_that_is_impaired_tests_the_promise_about_it(story, down, tested):
    story.fault("kill", 100, 9000, SERVERS[:down])
    for number, at in enumerate((500, 9500)):
        story.grant(number, f"h{number}", at=at, until=at + 900)
        story.release(number, f"h{number}", at=at + 10)
    found = verdict(story, **MINORITY)
    assert found.valid is True
    assert ("minority" not in found.details["untested"]) is tested
    what = "With redis-1, redis-2 impaired from 0.100 s: granted after 0.400 s."
    assert (what in [row["what"] for row in found.evidence]) is tested


def test_the_longest_wait_is_in_the_summary(story):
    dies_with_the_lock(story)
    story.grant(2, "h2", at=1050, until=2050)
    assert verdict(story).summary.startswith(
        "The lock became available every time; the longest wait was 0.950 s."
    )


def test_a_client_that_reports_the_loss_of_a_hold_goes_on_asking(story):
    story.grant(7, "h1", at=0, until=1000)
    story.release(7, "h1", at=10)
    story.op(500, 7, "info", "lost", {"lock": "orders", "hold": "h1"})
    asks(story, 20, 9000)
    assert limits(verdict(story)) == ["2.010"]
    story.op(500, 7, "info", "lost", {"lock": "orders"})  # its place in the queue
    assert verdict(story).valid is not False


def test_an_exclusive_hold_ends_with_the_next_grant_in_any_mode(story):
    story.grant(1, "h1", at=0, until=None)
    story.grant(2, "h2", at=100, until=1100, shared=True)
    story.release(2, "h2", at=200)
    story.denied(3, 9000, 9100)
    assert verdict(story, **REFUSALS).valid is False


def test_a_shared_hold_outlasts_the_next_shared_grant(story):
    story.grant(1, "h1", at=0, until=None, shared=True)
    story.grant(2, "h2", at=100, until=1100, shared=True)
    story.release(2, "h2", at=200)
    story.denied(3, 9000, 9100)
    assert verdict(story, **REFUSALS).valid is not False


@pytest.mark.parametrize("ttl", [{}, {"ttl": 1000 * MS}, {"ttl": 500 * MS}])
@pytest.mark.parametrize("late", [False, True])
def test_a_request_without_an_answer_stands_for_its_lease_or_the_longest_of_its_lock(
    story, ttl, late
):
    """Until 0.1 + 0.2 s, a lease of 1 s or its own, and a bound of 2 s. A single refusal counts."""
    story.call(1, "acquire", 0, 100, {"lock": "orders", **ttl}, {}, "info", ["timeout", "-"])
    over = 2300 + ttl.get("ttl", 1000 * MS) // MS + late
    story.denied(2, over, over + 10)
    assert (verdict(story, **REFUSALS).valid is False) is late


@pytest.mark.parametrize(("at", "blamed"), [(3400, False), (3450.001, True)])
def test_clocks_that_may_differ_leave_such_a_request_more_time(story, at, blamed):
    """By 0.05 s: it arrives as much later, the bound is as much longer, and the refusal must come
    as much later still."""
    story.call(1, "acquire", 0, 100, {"lock": "orders", "ttl": 1000 * MS}, type="info")
    story.denied(2, at, at + 10)
    clocks = {f"client-{n}": {"bound_ns": 25 * MS} for n in (1, 2)}
    assert (verdict(story, **REFUSALS, clocks=clocks).valid is False) is blamed


def test_a_refused_request_stands_until_its_answer_alone(story):
    story.denied(1, 0, 100)
    story.denied(2, 101, 110)
    assert len(verdict(story, **REFUSALS).evidence) == 2


def test_grants_in_each_mode_count_as_granted_in_time(story):
    story.grant(1, "h1", at=100, until=1000)
    story.release(1, "h1", at=200)
    story.grant(2, "h2", at=300, until=1000, shared=True)
    story.release(2, "h2", at=400)
    assert verdict(story).details["served"] == 2


def test_an_extension_that_is_still_open_may_have_prolonged_the_lease(story):
    """It was sent at 0.8 s, for 1 s."""
    story.grant(1, "h1", at=0, until=1000)
    asked = {"lock": "orders", "hold": "h1", "ttl": 1000 * MS}
    story.call(1, "extend", 800, None, asked)
    asks(story, 900, 9000)
    assert limits(verdict(story)) == ["3.800"]


def test_a_short_lease_that_a_fault_held_back_stands_for_no_longer_one(story):
    """It arrives by 2.2 + 2.1 + 0.2 s, and stands for its lease of 0.1 s and a bound of 2 s."""
    story.grant(2, "h2", at=0, until=10_000, ttl=10_000)
    story.release(2, "h2", at=10)
    story.fault("partition", 50, 2200, ["client-1"], arguments={"links": [["client-1", "s"]]})
    asked = {"lock": "orders", "ttl": 100 * MS}
    story.call(1, "acquire", 100, 200, asked, {}, "info", ["timeout", "-"])
    story.denied(3, 7000, 7100)
    assert verdict(story, **REFUSALS).valid is False


def lost_node(story, refused_at):
    """A node is lost at 9 s, and its loss is all that is known; a client was refused alone."""
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=10)
    if refused_at is not None:
        story.denied(2, refused_at, refused_at + 10)
    story.grant(1, "h2", at=8000, until=9000)
    story.release(1, "h2", at=8010)
    return story


@pytest.mark.parametrize(
    ("refused_at", "lost", "proved", "valid"),
    [
        (None, True, False, True),
        (500, False, False, False),
        (500, True, False, "unknown"),
        (500, True, True, False),
    ],
)
def test_a_lost_node_may_have_refused_before_its_loss_was_noticed(
    story, refused_at, lost, proved, valid
):
    lost_node(story, refused_at)
    if lost:
        story.fault("gremlin", 9000, None, ["redis-1"], proved=proved)
    found = verdict(story, **REFUSALS)
    assert found.valid == valid
    unknown = found.summary.startswith("It is not known which nodes gremlin keeps from answering.")
    assert unknown is (valid == "unknown")


def test_a_dead_lock_counts_whether_or_not_a_fault_of_unknown_effect_is_on_later(story):
    asks_in_vain(story, 0, 4000)
    story.fault("gremlin", 5000, 6000, ["redis-1"])
    assert limits(verdict(story)) == ["2.000"]
