"""A write of an earlier hold after one of a later hold is stale, where their order is certain."""

from __future__ import annotations

import pytest

from fencepost.checker.history.history import History, Op
from fencepost.checker.resource import resource
from tests.checker.resource_stories import TWO_HOSTS, kinds, two_holds
from tests.histories import MS, kept_on, over


def test_a_write_of_an_earlier_hold_after_a_later_holder_s_write_is_stale(story):
    """It is stale even if its writer had read the newest version."""
    two_holds(story)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 1, 2, hold="h1")
    assert kinds(story) == [("stale", "a")]


def test_a_late_write_before_the_later_holder_wrote_is_not_stale(story):
    two_holds(story)
    story.write(1, 2010, "a", 0, 1, hold="h1")
    story.write(2, 2020, "b", 1, 2, hold="h2")
    assert kinds(story) == []


def test_a_stale_write_that_is_refused_damages_nothing(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 1, hold="h1", type="fail")
    assert kinds(story) == []


def test_overlapping_writes_without_numbers_are_not_called_stale(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, done=2030, hold="h2")
    story.write(1, 2020, "a", 1, done=2040, hold="h1")
    assert kinds(story) == []


def test_the_later_hold_is_the_one_with_the_higher_token_though_its_grant_came_first(story):
    story.grant(2, "h2", at=5000, asked=4000, until=15000, token=2)
    story.write(2, 6000, "b", 0, 1, hold="h2")
    story.grant(1, "h1", at=10000, asked=0, until=3000, token=1)
    story.write(1, 10100, "a", 1, 2, hold="h1")
    story.write(2, 11000, "c", 2, 3, hold="h2")
    assert kinds(story) == [("stale", "a")]
    what = resource(story.history(), {}).evidence[0]["what"]
    assert "under hold h2 (token 2), granted at 5.000 s, which is later" in what
    assert "later than its own hold h1 (token 1), granted at 10.000 s" in what


def test_tokens_that_fell_within_the_bounds_of_clocks_still_tell_which_hold_is_later(story):
    story.grant(2, "h2", at=5000, asked=4000, until=15000, token=2)
    story.write(2, 6000, "b", 0, 1, hold="h2")
    story.grant(1, "h1", at=10000, asked=0, until=3000, token=1)
    story.write(1, 10100, "a", 1, 2, hold="h1")
    story.grant(3, "h3", at=20000, until=20001, token=9)
    story.grant(4, "h4", at=20002, until=20003, token=8)
    clocks = {f"client-{n}": {"bound_ns": 4 * MS} for n in (3, 4)}
    assert kinds(story) == []
    assert kinds(story, {"clocks": clocks}) == [("stale", "a")]


def test_a_hold_whose_release_failed_continues_where_the_test_says_so(story):
    """So the other hold has no order with it."""
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=500, type="fail", kind="no-quorum")
    story.grant(2, "h2", at=700, until=1700)
    story.write(2, 800, "b", 0, 1, hold="h2")
    story.write(1, 900, "a", 1, 2, hold="h1")
    assert kinds(story) == [("stale", "a")]
    assert kinds(story, {"failed_release": "nothing"}) == []


def test_a_late_write_of_a_late_grant_before_the_later_holder_s_is_sound(story):
    story.grant(2, "h2", at=5000, asked=4000, until=15000, token=2)
    story.grant(1, "h1", at=10000, asked=0, until=3000, token=1)
    story.write(1, 10020, "a", 0, 1, hold="h1")
    story.write(2, 10200, "b", 1, 2, hold="h2")
    assert kinds(story) == []


def test_without_tokens_a_hold_that_was_asked_for_while_the_other_ran_is_in_no_order(story):
    story.grant(1, "h1", at=1000, asked=0, until=3000)
    story.grant(2, "h2", at=5000, asked=900, until=15000)
    story.write(2, 6000, "b", 0, 1, hold="h2")
    story.write(1, 7000, "a", 1, 2, hold="h1")
    assert kinds(story) == []


def test_a_write_of_unknown_outcome_was_there_from_the_first_read_of_it_on(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, type="info", done=2020, hold="h2")
    story.read(3, 2030, "b", 1, done=2040)
    story.write(1, 2050, "a", 1, hold="h1")
    story.read(3, 2060, "b", 1, done=2070)
    (stale,) = (e for e in resource(story.history(), {}).evidence if e["kind"] == "stale")
    assert stale == {
        "kind": "stale",
        "what": "'a', written by client-1 (process 1) and accepted by 2.050 s, was accepted though "
        "stale: client-2 (process 2) had written 'b' before under hold h2, granted at 2.000 s, "
        "which is later than its own hold h1, granted at 0.000 s. The lease of hold h1 expired at "
        "1.000 s. No fault explains why client-1 (process 1) had not given it up 1.050 s later.",
        "cause": [over("h1", 1000), kept_on(1, 1000, 2050)],
        "time_ns": 2050 * MS,
        "resource": "account",
        "ops": [8, 9],
    }


def test_a_hold_that_was_granted_while_the_other_was_believed_is_in_no_order(story):
    story.grant(1, "h1", at=1000, until=3000)
    story.grant(2, "h2", at=2000, until=15000)
    story.write(2, 6000, "b", 0, 1, hold="h2")
    story.write(1, 7000, "a", 1, 2, hold="h1")
    assert kinds(story) == []


def test_a_write_under_another_lock_between_hides_no_stale_write(story):
    two_holds(story)
    story.grant(3, "h3", at=2100, until=9000, lock="invoices")
    story.write(2, 2200, "b", 0, 1, hold="h2")
    story.write(3, 2300, "c", 1, 2, hold="h3")
    story.write(1, 2400, "a", 2, 3, hold="h1")
    assert kinds(story) == [("stale", "a")]
    what = resource(story.history(), {}).evidence[0]["what"]
    assert "client-2 (process 2) had written 'b' before under hold h2, granted at 2.000 s" in what


def test_holds_of_two_locks_are_in_no_order(story):
    story.grant(1, "h1", at=0, until=1000, token=1, lock="invoices")
    story.grant(2, "h2", at=2000, until=3000, token=2)
    story.write(2, 2200, "b", 0, 1, hold="h2")
    story.write(1, 2400, "a", 1, 2, hold="h1")
    assert kinds(story) == []


def test_writes_of_two_resources_are_in_no_order(story):
    two_holds(story)
    story.write(2, 2200, "b", 0, 1, hold="h2")
    asked = {"resource": "stock", "value": "a", "version": 0, "hold": "h1"}
    story.call(1, "write", 2400, 2400, asked, {"stored": 1})
    assert kinds(story) == []


def test_an_unordered_hold_between_hides_no_stale_write(story):
    """h3 was requested before h1 was granted: it is later than none, and its grant came last."""
    story.grant(1, "h1", at=100, until=1000)
    story.grant(2, "h2", at=2000, until=3000)
    story.grant(3, "h3", at=4000, asked=50, until=9000)
    story.write(2, 4200, "b", 0, 1, hold="h2")
    story.write(3, 4300, "c", 1, 2, hold="h3")
    story.write(1, 4400, "a", 2, 3, hold="h1")
    assert kinds(story) == [("stale", "a")]


def test_a_write_under_a_hold_that_the_history_does_not_have_is_in_no_order(story):
    two_holds(story)
    story.write(2, 2200, "b", 0, 1, hold="h2")
    story.write(1, 2400, "a", 1, 2, hold="h0")
    story.write(3, 2500, "c", 2, 3)
    assert kinds(story) == []


def test_a_name_that_two_holds_share_says_nothing(story):
    two_holds(story)
    story.grant(3, "h1", at=5000, until=6000)
    story.write(2, 5100, "b", 0, 1, hold="h2")
    story.write(1, 5200, "a", 1, 2, hold="h1")
    assert kinds(story) == []


def test_writes_are_ordered_by_the_numbers_of_the_resource_where_both_have_one(story):
    """b was acknowledged late, and took effect before a all the same."""
    two_holds(story)
    story.write(2, 2200, "b", 0, 1, hold="h2", done=2900)
    story.write(1, 2400, "a", 1, 2, hold="h1", done=2500)
    assert kinds(story) == [("stale", "a")]


def test_a_write_without_a_number_is_ordered_by_time_among_others_with_one(story):
    two_holds(story)
    story.write(2, 2200, "b", 0, None, hold="h2")
    story.write(1, 2400, "a", 1, 2, hold="h1")
    assert kinds(story) == [("stale", "a")]


def test_a_compare_and_set_resource_is_not_judged_for_stale_writes_and_says_so(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 1, 2, hold="h1")
    of_before = {"guard": "compare-and-set"}
    assert kinds(story, of_before) == []
    test = of_before | {"lockless": True}
    found = resource(story.history(), test)
    assert found == resource(story.history(), of_before)
    assert found.details["untested"] == ["stale writes (guard compare-and-set)"]
    assert found.summary == (
        "2 accepted writes, each present and based on the version that its writer read. Not "
        "tested: stale writes (guard compare-and-set)."
    )


def test_a_guard_of_any_name_that_needs_no_lock_is_not_judged_for_stale_writes(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 1, 2, hold="h1")
    assert kinds(story, {"guard": "mine", "lockless": True}) == []
    assert kinds(story, {"guard": "mine"}) == [("stale", "a")]


def test_on_two_hosts_a_hold_is_later_only_beyond_the_bounds_of_both_clocks(story):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=1007, until=3000)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 1, 2, hold="h1")
    assert kinds(story) == [("stale", "a")]
    assert kinds(story, TWO_HOSTS) == []


def test_on_two_hosts_a_hold_must_have_been_asked_for_after_the_other_s_grant(story):
    story.grant(1, "h1", asked=0, at=1000, until=3000)
    story.grant(2, "h2", asked=900, at=5000, until=9000)
    story.write(2, 5010, "b", 0, 1, hold="h2")
    story.write(1, 5020, "a", 1, 2, hold="h1")
    assert kinds(story, TWO_HOSTS) == []


def test_many_writes_that_time_alone_orders_are_all_found_stale(story):
    """Each hold overlaps the next and each has no number: the worst case for the comparison."""
    ops = []
    many = 600
    for n in range(many):
        hold = {"lock": "orders", "hold": f"h{n}", "deadline": n + 5}
        ops.append((n, n, "invoke", "acquire", {"lock": "orders"}))
        ops.append((n, n, "ok", "acquire", hold))
        asked = {"resource": "account", "value": f"v{n}", "hold": f"h{many - n}", "version": None}
        ops.append((many + n, n, "invoke", "write", asked))
        ops.append((many + n, n, "ok", "write", asked))
    ops.sort(key=lambda op: op[0])
    history = History([Op(i, *op, None, None) for i, op in enumerate(ops)])
    assert resource(history, {}).details["stale"] > many / 2


def test_a_lock_s_tokens_order_nothing_once_one_fell_along_certain_time(story):
    """Redlock's random values, read as tokens: the later hold has the lower one."""
    story.grant(1, "h1", at=0, until=1000, token=900)
    story.read(1, 1, None, 0)
    story.write(1, 2, "a", 0, 1, hold="h1", token=900)
    story.release(1, "h1", 3)
    story.grant(2, "h2", at=10, until=1000, token=5)
    story.read(2, 11, "a", 1)
    story.write(2, 12, "b", 1, 2, hold="h2", token=5)
    assert kinds(story) == []


def test_numbers_that_contradict_certain_time_order_no_writes(story):
    """The store reused a number: its answers are not blamed on the lock."""
    story.grant(1, "h1", at=0, until=1000, token=1)
    story.write(1, 20, "a", None, 2, done=21, hold="h1", token=1)
    story.release(1, "h1", 30)
    story.grant(2, "h2", at=50, until=1000, token=2)
    story.write(2, 60, "b", None, 1, done=61, hold="h2", token=2)
    assert "stale" not in {kind for kind, _ in kinds(story)}


@pytest.mark.parametrize("tokens", [(1, 2), (None, None)])
def test_of_two_holds_that_a_process_has_at_one_time_neither_is_later(story, tokens):
    story.grant(1, "outer", at=0, until=25, token=tokens[0])
    story.grant(1, "inner", at=30, asked=10, until=1000, token=tokens[1])
    story.write(1, 40, "a", 0, 1, hold="inner")
    story.write(1, 50, "b", 1, 2, hold="outer")
    assert kinds(story) == []


@pytest.mark.parametrize("tokens", [(1, 2), (None, None)])
def test_of_two_holds_that_a_process_has_one_after_the_other_the_second_is_later(story, tokens):
    story.grant(1, "outer", at=0, until=25, token=tokens[0])
    story.grant(1, "inner", at=30, asked=25, until=1000, token=tokens[1])
    story.write(1, 40, "a", 0, 1, hold="inner")
    story.write(1, 50, "b", 1, 2, hold="outer")
    assert kinds(story) == [("stale", "b")]


@pytest.mark.parametrize("tokens", [(1, 3, 2), (None, None, None)])
def test_a_write_under_an_inner_hold_hides_no_stale_write(story, tokens):
    story.grant(1, "outer", at=0, until=25, token=tokens[0])
    story.grant(2, "other", at=30, until=1000, token=tokens[2])
    story.grant(1, "inner", at=31, asked=10, until=1000, token=tokens[1])
    story.grant(1, "third", at=60, asked=40, until=1000)
    story.write(2, 40, "b", 0, 1, hold="other")
    story.write(1, 70, "a", 1, 2, hold="third")
    story.write(1, 80, "c", 2, 3, hold="outer")
    assert kinds(story) == [("stale", "c")]
