"""Tokens order the grants, and the resource follows their order; otherwise fencing fails."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.checker.fencing import fencing
from tests.checker.fencing_stories import two_grants, verdict
from tests.histories import MS, Story, over


def test_tokens_that_are_unique_and_rise_are_fine(story):
    story.grant(1, "h1", at=10, until=1000, token=1)
    story.grant(2, "h2", at=2000, until=3000, token=7)
    found = verdict(story)
    assert (found.valid, found.evidence) == (True, [])


def test_grants_without_tokens_leave_nothing_to_judge(story):
    story.grant(1, "h1", at=10, until=1000)
    assert verdict(story).valid == "unknown"


def test_a_token_granted_twice_is_found_even_in_concurrent_grants(story):
    story.grant(1, "h1", asked=0, at=10, until=1000, token=1)
    story.grant(2, "h2", asked=5, at=20, until=1000, token=1)
    story.write(1, 30, "a", 0, 1, hold="h1", token=2)
    story.write(1, 40, "b", 1, 2, hold="h1", token=1)
    found = verdict(story)
    assert found.valid is False
    assert found.summary == (
        "1 of 2 tokens repeated or lower and 1 write accepted after one with a higher token. "
        "Not tested: the order of tokens (no grant came certainly after another)."
    )
    assert found.evidence[0]["holds"] == ["h1", "h2"]
    assert (
        "client-2 (process 2) was granted token 1 at 0.020 s: the same token as 1, which "
        "client-1 (process 1) was granted at 0.010 s."
    ) in found.evidence[0]["what"]


def test_a_token_below_that_of_an_earlier_grant_is_found_with_the_fault_that_was_on(story):
    story.grant(1, "h1", at=10, until=1000, token=5)
    story.fault("kill", 1500, 1600, ["redis-1"], arguments={"words": "redis-1 crashes"})
    story.grant(2, "h2", asked=2000, at=2010, until=3000, token=4)
    found = verdict(story)
    assert found.valid is False
    assert found.summary == (
        "1 of 2 tokens repeated or lower. Not tested: the resource (no write with a lock's token "
        "was accepted)."
    )
    assert found.details == {
        "tokens": 2,
        "grants": False,
        "writes": True,
        "untested": ["the resource (no write with a lock's token was accepted)"],
    }
    assert found.evidence == [
        {
            "what": (
                "client-2 (process 2) was granted token 4 at 2.010 s: a lower token than 5, which "
                "client-1 (process 1) was granted at 0.010 s. A server may have forgotten it, or "
                "ended it early: redis-1 crashes (from 1.500 s to 1.600 s)."
            ),
            "cause": [
                {
                    "sort": "forgot",
                    "what": "A server may have forgotten it, or ended it early: redis-1 crashes "
                    "(from 1.500 s to 1.600 s)",
                    "time_ns": 1500 * MS,
                    "sure": False,
                    "family": "kill",
                    "nodes": ["redis-1"],
                }
            ],
            "time_ns": 2010 * MS,
            "lock": "orders",
            "holds": ["h1", "h2"],
            "ops": [1, 7],
        }
    ]


def test_concurrent_grants_may_carry_their_tokens_in_either_order(story):
    story.grant(1, "h1", asked=0, at=10, until=1000, token=5)
    story.grant(2, "h2", asked=5, at=2010, until=3000, token=4)
    assert verdict(story).valid is True


def test_a_fall_is_seen_behind_a_grant_that_was_lower_still(story):
    """The highest earlier grant counts, which is not always the latest."""
    story.grant(1, "h1", at=10, until=100, token=9)
    story.grant(2, "h2", at=20, until=100, token=3)
    story.grant(3, "h3", at=30, until=100, token=5)
    assert [row["holds"] for row in verdict(story).evidence] == [["h1", "h2"], ["h1", "h3"]]


def test_two_grants_of_one_stamp_are_not_ordered(story):
    """The history has one of them first; the clients' clocks may be coarse."""
    story.grant(1, "h1", at=10, until=1000, token=5)
    story.grant(2, "h2", at=10, until=1000, token=4)
    assert verdict(story).valid is True
    story.grant(3, "h3", at=11, until=1000, token=4)
    assert ["h1", "h3"] in [row["holds"] for row in verdict(story).evidence]


def test_two_grants_of_one_stamp_to_one_process_are_ordered(story):
    story.grant(1, "h1", at=10, until=1000, token=5)
    story.release(1, "h1", at=10)
    story.grant(1, "h2", at=10, until=1000, token=4)
    story.grant(2, "h3", at=10, until=1000, token=9)
    assert [row["holds"] for row in verdict(story).evidence] == [["h1", "h2"]]


CLOCKS = {"clocks": {"client-1": {"bound_ns": 4 * MS}, "client-2": {"bound_ns": 4 * MS}}}


def test_a_grant_is_after_another_only_beyond_the_bounds_of_both_clocks(story):
    story.grant(1, "h1", at=10, until=1000, token=5)
    story.grant(2, "h2", asked=18, at=30, until=1000, token=4)
    assert verdict(story).valid is False
    assert verdict(story, **CLOCKS).valid is True
    story.grant(3, "h3", asked=40, at=40, until=1000, token=4)
    assert [row["holds"] for row in verdict(story, **CLOCKS).evidence] == [
        ["h2", "h3"],
        ["h1", "h3"],
    ]


def test_bounds_of_clocks_do_not_matter_between_clients_of_one_host(story):
    story.grant(1, "h1", at=10, until=1000, token=5)
    story.grant(1, "h2", at=11, until=1000, token=4)
    assert verdict(story, **CLOCKS).valid is False


def test_a_resource_that_accepts_a_lower_token_after_a_higher_one_is_found(story):
    two_grants(story)
    story.write(2, 2100, "b", 0, 1, hold="h2", token=2)
    story.write(1, 2200, "a", 1, 2, hold="h1", token=1)
    found = verdict(story)
    assert found.valid is False
    assert found.details == {"tokens": 2, "grants": True, "writes": False, "untested": []}
    assert found.summary == "1 write accepted after one with a higher token."


def test_the_evidence_of_a_late_write_names_both_writes_and_the_fault_that_was_on(story):
    two_grants(story)
    story.write(2, 2100, "b", 0, 1, hold="h2", token=2)
    story.write(2, 2110, "c", 1, 2, hold="h2", token=2)
    story.fault("pause", 900, 2195, ["client-1"])
    story.fault("pause", 2211, 2300, ["client-2"])
    story.write(1, 2200, "a", 2, 3, done=2210, hold="h1", token=1)
    assert verdict(story).evidence == [
        {
            "what": (
                "client-1 (process 1) wrote 'a' with token 1, accepted by 2.210 s, after the "
                "resource had accepted token 2 from client-2 (process 2). The lease of hold h1 "
                "expired at 1.000 s. This kept client-1 from giving it up: pause of client-1 (from "
                "0.900 s to 2.195 s)."
            ),
            "cause": [
                over("h1", 1000),
                {
                    "sort": "kept-by-fault",
                    "what": "This kept client-1 from giving it up: pause of client-1 (from 0.900 s "
                    "to 2.195 s)",
                    "time_ns": 900 * MS,
                    "sure": True,
                    "family": "pause",
                    "nodes": ["client-1"],
                },
            ],
            "time_ns": 2210 * MS,
            "resource": "account",
            "lock": "orders",
            "ops": [6, 12],
        }
    ]


def test_the_resource_s_own_numbers_order_writes_that_overlap_in_time(story):
    two_grants(story)
    story.write(2, 2100, "b", 0, 1, done=2300, hold="h2", token=2)
    story.write(1, 2150, "a", 0, 2, done=2250, hold="h1", token=1)
    assert verdict(story).valid is False


def test_overlapping_writes_without_numbers_prove_nothing(story):
    two_grants(story)
    story.write(2, 2100, "b", 0, done=2300, hold="h2", token=2)
    story.write(1, 2150, "a", 0, done=2250, hold="h1", token=1)
    assert verdict(story).valid is True


def test_without_numbers_real_time_orders_writes_that_do_not_overlap(story):
    two_grants(story)
    story.write(2, 2100, "b", 0, done=2200, hold="h2", token=2)
    story.write(1, 2250, "a", 0, done=2300, hold="h1", token=1)
    assert verdict(story).valid is False


def test_a_lower_token_that_is_refused_and_an_equal_one_that_is_accepted_are_right(story):
    two_grants(story)
    story.write(2, 2100, "b", 0, 1, hold="h2", token=2)
    story.write(2, 2150, "c", 1, 2, hold="h2", token=2)
    story.write(1, 2200, "a", 1, hold="h1", token=1, type="fail")
    assert verdict(story).valid is True


def test_where_one_of_two_writes_has_no_number_certain_time_orders_them(story):
    """A third write without a number does not prevent the comparison of the other two."""
    two_grants(story)
    story.write(2, 2100, "b", 0, 1, done=2300, hold="h2", token=2)
    story.write(1, 2150, "a", 0, 2, done=2250, hold="h1", token=1)
    story.write(3, 2160, "c", 0, done=2350, hold="h2", token=2)
    found = verdict(story)
    assert [row["ops"] for row in found.evidence] == [[4, 5]]
    story.write(1, 2360, "d", 0, hold="h1", token=1)
    assert len(verdict(story).evidence) == 2


def test_a_write_that_is_only_read_is_accepted_by_the_end_of_that_read(story):
    two_grants(story)
    story.write(2, 2100, "b", 0, done=2110, hold="h2", token=2, type="info")
    story.write(1, 2150, "a", 0, hold="h1", token=1)
    assert verdict(story).valid is True
    story.read(3, 2130, "b", 1, done=2140)
    assert verdict(story).valid is False


def test_a_write_is_after_another_only_beyond_the_bounds_of_both_clocks(story):
    two_grants(story)
    story.write(2, 2100, "b", 0, hold="h2", token=2)
    story.write(1, 2108, "a", 0, hold="h1", token=1)
    assert verdict(story).valid is False
    assert verdict(story, **CLOCKS).valid is True
    story.write(1, 2109, "c", 0, hold="h1", token=1)
    assert verdict(story, **CLOCKS).valid is False


def test_properties_that_the_history_could_not_show_are_named(story):
    story.grant(1, "h1", asked=0, at=10, until=1000, token=1)
    story.grant(2, "h2", asked=5, at=20, until=1000)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.summary == (
        "No two tokens could be compared: nothing was tested. Not tested: the order of tokens (no "
        "grant came certainly after another), 1 grant without a token, the resource (no write with "
        "a lock's token was accepted)."
    )
    assert found.details["untested"] == found.summary[:-1].split("Not tested: ")[1].split(", ")


GRANTS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 6), st.integers(1, 6), st.sampled_from("ab")),
    min_size=1,
    max_size=6,
)


@given(GRANTS)
@settings(max_examples=100)
def test_tokens_are_faulted_exactly_where_some_pair_is_equal_or_falls(grants):
    story = Story()
    told = []
    for process, (at, took, token, lock) in enumerate(grants):
        # Apart in time, so that the order of ops is the order of times.
        asked = at + process / 100
        answered = asked + took + 0.001
        story.grant(process, f"h{process}", answered, 99, asked=asked, token=token, lock=lock)
        told.append((asked, answered, token, lock))
    bad = any(
        one[3] == other[3] and (one[2] == other[2] or (one[1] < other[0] and one[2] > other[2]))
        for one, other in permutations(told, 2)
    )
    assert verdict(story).valid is not bad


WRITES = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=6
)


@given(WRITES)
@settings(max_examples=100)
def test_writes_are_faulted_exactly_if_a_lower_token_surely_came_after_a_higher_one(writes):
    story = Story()
    story.grant(99, "h", at=0, until=1, token=1)
    for process, (at, took, token) in enumerate(writes):
        # Apart in time, so that the order of ops is the order of times.
        begun = at + process / 100
        story.write(process, begun, f"v{process}", None, done=begun + took + 0.001, token=token)
    times = [
        (at + p / 100, at + p / 100 + took + 0.001, t) for p, (at, took, t) in enumerate(writes)
    ]
    bad = any(one[1] < other[0] and one[2] > other[2] for one, other in permutations(times, 2))
    assert fencing(story.history(), {}).details["writes"] is not bad


def test_two_grants_of_one_lock_and_two_writes_of_one_resource_test_tokens(story):
    story.grant(1, "h1", asked=0, at=10, until=1000, token=1, lock="a")
    assert verdict(story).valid == "unknown"
    story.grant(2, "h2", asked=5, at=20, until=1000, token=2, lock="b")
    assert verdict(story).valid == "unknown"
    story.grant(3, "h3", asked=5, at=20, until=1000, token=3, lock="b")
    assert verdict(story).valid is True


def test_a_process_that_keeps_its_hold_may_be_granted_the_same_token_again(story):
    story.grant(1, "h1", at=0, until=1000, token=1)
    story.grant(1, "h2", at=10, until=1000, token=1)
    assert verdict(story).valid is True
    story.release(1, "h2", at=20)
    story.release(1, "h1", at=30)
    story.grant(1, "h3", at=40, until=1000, token=1)
    assert [row["holds"] for row in verdict(story).evidence] == [["h1", "h3"]]


def test_a_lower_token_for_the_same_process_is_wrong_although_it_keeps_its_hold(story):
    story.grant(1, "h1", at=0, until=1000, token=2)
    story.grant(1, "h2", at=10, until=1000, token=1)
    assert verdict(story).valid is False


def test_the_same_token_for_another_process_is_wrong_whoever_else_has_it(story):
    story.grant(1, "h1", at=0, until=1000, token=1)
    story.grant(1, "h2", at=10, until=1000, token=1)
    story.grant(2, "h3", at=20, until=2000, token=1)
    assert [row["holds"] for row in verdict(story).evidence] == [["h1", "h3"]]


def test_a_token_that_is_given_again_may_follow_a_higher_one(story):
    """The first hold may end, and another client be granted a higher token, before the process
    learns of its second grant."""
    story.grant(1, "h1", at=0, until=1000, token=1)
    story.grant(2, "h2", asked=20, at=30, until=1000, token=2)
    story.grant(1, "h3", asked=40, at=50, until=1000, token=1)
    assert verdict(story).valid is True
    story.release(1, "h1", at=60)
    story.release(1, "h3", at=70)
    story.grant(1, "h4", at=80, until=2000, token=1)
    assert verdict(story).valid is False


def test_an_exclusive_grant_with_the_token_of_its_process_begins_no_generation(story):
    story.grant(1, "h1", at=0, until=1000, token=1, shared=True)
    story.grant(1, "h2", asked=10, at=20, until=1000, token=1)
    story.grant(1, "h3", asked=30, at=40, until=1000, token=1, shared=True)
    assert verdict(story).valid is True


def nested(story, *, between=False):
    """A client writes under its second hold, gives that back, and writes under its first."""
    story.grant(1, "outer", at=0, until=1000, token=1)
    if between:
        story.grant(2, "other", at=5, until=1000, token=2)
        story.write(2, 15, "b", 0, 1, hold="other", token=2)
    story.grant(1, "inner", at=10, until=1000, token=3)
    story.write(1, 20, "c", None, hold="inner", token=3)
    story.release(1, "inner", at=30)


def test_a_write_under_the_outer_hold_of_a_process_after_one_under_the_inner_is_not_late(story):
    nested(story)
    story.write(1, 40, "d", None, hold="outer", token=1)
    assert verdict(story).valid is True


@pytest.mark.parametrize("given_back, late", [(40, True), (None, False)])
def test_it_is_late_if_the_process_gave_the_outer_hold_back_before_it_asked_again(
    story, given_back, late
):
    story.grant(1, "outer", at=0, until=1000, token=1)
    if given_back:
        story.release(1, "outer", at=given_back)
    story.grant(1, "inner", at=50, until=1000, token=2)
    story.write(1, 60, "c", None, hold="inner", token=2)
    story.write(1, 70, "d", None, hold="outer", token=1)
    assert verdict(story).valid is not late


def test_a_write_under_an_inner_hold_hides_no_higher_token_of_another_process(story):
    nested(story, between=True)
    story.write(1, 40, "d", None, hold="outer", token=1)
    (row,) = verdict(story).evidence
    assert "after the resource had accepted token 2 from client-2" in row["what"]


def test_a_write_of_another_process_is_late_after_one_under_an_inner_hold(story):
    nested(story, between=True)
    story.write(2, 40, "d", None, hold="other", token=2)
    (row,) = verdict(story).evidence
    assert "after the resource had accepted token 3 from client-1" in row["what"]


@pytest.mark.parametrize(
    "type, token, tested", [("ok", 3, True), ("fail", 1, True), ("fail", 3, False)]
)
def test_a_resource_that_refuses_every_write_but_one_is_not_tested(story, type, token, tested):
    """A refused write shows the guard at work only if its token is a lower one."""
    two_grants(story)
    story.write(1, 10, "a", 0, 1, hold="h1", token=2)
    story.write(2, 2010, "b", 1, 2 if type == "ok" else None, hold="h2", token=token, type=type)
    words = ["the resource (it accepted no two writes with a lock's tokens)"]
    assert verdict(story).valid is True
    assert verdict(story).details["untested"] == ([] if tested else words)
