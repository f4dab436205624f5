"""The resource's own history: only the order of its versions is tried, against real time."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.checker.history.history import History
from fencepost.checker.store import store
from tests.histories import MS
from tests.oracles.store import draw, verdict


def valid(story):
    return store(story.history(), {}).valid


def test_reads_and_writes_in_the_order_of_their_versions_are_valid(story):
    story.read(0, 1, None, 0)
    story.write(0, 2, "a", 0, 1, done=5)
    story.read(1, 3, "a", 1, done=4)
    story.write(1, 6, "b", 1, 2)
    found = store(story.history(), {})
    assert found.valid is True
    assert found.summary == "All 4 answers of the resource fit one order."
    assert (found.evidence, found.details) == ([], {"operations": 4, "untested": []})


def test_nothing_answered_is_unknown(story):
    story.write(0, 1, "a", 0, type="info")
    found = store(story.history(), {})
    assert found.valid == "unknown"
    assert found.summary == "The resource never answered: nothing was tested."
    assert (found.evidence, found.details) == ([], {"operations": 0})


def test_a_write_that_does_not_say_its_version_leaves_no_order_to_try(story):
    story.write(0, 1, "a", 0)
    found = store(story.history(), {})
    assert found.valid == "unknown"
    assert "has no version, and no other answer gives it" in found.summary
    assert (found.evidence, found.details) == ([], {"operations": 1, "untested": []})


def test_a_read_that_goes_back_is_no_order(story):
    story.write(0, 1, "a", 0, 1)
    story.write(0, 2, "b", 1, 2)
    story.read(1, 3, "a", 1, done=4)
    found = store(story.history(), {})
    assert found.valid is False
    assert found.evidence == [
        {
            "what": "The order is reversed: process 1 read version 1, from 0.003 s to "
            "0.004 s, after process 0 wrote version 2, from 0.002 s to 0.002 s.",
            "time_ns": 3 * MS,
            "ops": [3, 5],
        }
    ]


def test_one_version_with_two_values_is_no_register(story):
    story.write(0, 1, "a", 0, 1)
    story.read(1, 2, "b", 1)
    (row,) = store(story.history(), {}).evidence
    assert row == {"what": "Version 1 is 'a' and also 'b'.", "time_ns": 2 * MS, "ops": [1, 3]}


def test_a_version_given_twice_is_no_register(story):
    story.write(0, 1, "a", 0, 1, done=9)
    story.write(1, 2, "a", 0, 1, done=9)
    (row,) = store(story.history(), {}).evidence
    assert row == {"what": "Version 1 was given to two writes.", "time_ns": 2 * MS, "ops": [2, 3]}


def test_a_version_that_no_write_can_have_made_is_no_register(story):
    story.write(0, 1, "a", 0, 1)
    story.write(0, 2, "c", 1, 3)
    story.read(1, 3, "c", 3)
    assert store(story.history(), {}).summary == (
        "No write can have made version 2, which exists: process 0 wrote version 3, from "
        "0.002 s to 0.002 s."
    )


def test_of_a_version_without_a_write_the_first_answer_that_shows_it_is_named(story):
    story.read(0, 1, None, 0)
    story.write(0, 2, "c", 1, 3, done=9)
    story.call(1, "read", 3, 4, {"resource": "account"}, {"value": "c", "version": 3})
    found = store(story.history(), {})
    assert "No write can have made version 1, which exists: process 1 read" in found.summary
    assert found.evidence[0]["ops"] == [4]


def test_a_write_that_never_returned_may_have_made_it(story):
    story.write(0, 1, "a", 0, 1)
    story.write(1, 2, "b", 1, type="info", done=9)
    story.write(0, 5, "c", 1, 3)
    assert valid(story) is True


def test_but_not_one_that_was_sent_later(story):
    story.write(0, 1, "a", 0, 1)
    story.write(0, 5, "c", 1, 3)
    story.write(1, 6, "b", 1, type="info", done=9)
    assert valid(story) is False


def test_a_refused_write_that_was_read_is_no_register_whatever_else_may_have_made_it(story):
    story.write(0, 10, "a", 0, type="info", done=20)
    story.write(1, 30, "b", 0, type="fail")
    story.read(2, 50, "b", 1)
    assert store(story.history(), {}).summary == (
        "'b', which process 2 read, is of a write of process 1 that failed."
    )
    assert store(story.history(), {}).evidence[0]["ops"] == [3, 5]


def test_a_value_without_a_writer_is_no_register(story):
    story.write(0, 10, "a", 0, type="info", done=20)
    story.read(2, 50, "b", 1)
    assert store(story.history(), {}).summary == ("'b', which process 2 read, was never written.")


def test_a_write_that_a_read_shows_at_its_version_made_no_other(story):
    story.write(0, 10, "a", 0, type="info", done=20)
    story.read(1, 30, "a", 2)
    assert "No write can have made version 1" in store(story.history(), {}).summary


def test_one_write_of_unknown_outcome_makes_one_version(story):
    story.write(0, 10, "a", 0, type="info", done=20)
    story.write(1, 30, "c", 0, 3)
    assert valid(story) is False
    story.write(2, 25, "b", 0, type="info")
    assert valid(story) is True


def test_a_value_that_was_read_before_its_write_was_sent_is_no_register(story):
    story.read(1, 10, "a", 1)
    story.write(0, 20, "a", 0, type="info", done=30)
    summary = store(story.history(), {}).summary
    assert "No write of 'a' can have made version 1, which exists" in summary


def test_of_two_writes_of_one_value_the_later_makes_the_version_that_was_read(story):
    """So the earlier one is left for the version without a reader."""
    story.write(0, 1, "a", 0, type="info")
    story.write(1, 2, "b", 0, 2)
    story.write(2, 3, "a", 2, type="info")
    story.read(3, 4, "a", 3)
    assert valid(story) is True


def test_version_0_is_none_and_the_first_write_makes_version_1(story):
    story.read(0, 1, "a", 0)
    assert store(story.history(), {}).summary == "Version 0 is None and also 'a'."


@pytest.mark.parametrize("version", [0, -1])
def test_no_write_makes_a_version_below_1(story, version):
    story.write(0, 1, None, 0, version)
    assert "There is no version" in store(story.history(), {}).summary


def test_no_read_shows_a_version_below_0(story):
    story.read(0, 1, None, -1)
    assert "There is no version -1" in store(story.history(), {}).summary


def test_a_write_that_does_not_say_its_version_has_the_one_that_its_value_was_read_with(story):
    story.write(0, 1, "a", 0)
    story.read(1, 2, "a", 1)
    assert valid(story) is True
    story.write(0, 3, "b", 1, 2)
    story.read(1, 4, "a", 1)
    assert valid(story) is False


def test_a_read_of_none_is_of_version_0(story):
    story.call(0, "read", 1, 1, {"resource": "account"}, {"value": None})
    assert valid(story) is True
    story.write(1, 0, "a", 0, 1)
    assert valid(story) is False


def test_with_two_writes_of_its_value_an_answer_without_version_is_in_no_place(story):
    story.write(0, 1, "a", 0)
    story.write(1, 2, "a", 0, 1)
    assert valid(story) == "unknown"


def test_a_write_without_version_may_have_made_an_unread_one(story):
    story.write(0, 1, "a", 0)
    story.write(1, 2, "b", 1, 2)
    assert valid(story) == "unknown"


def test_a_version_that_is_no_number_is_none(story):
    story.write(0, 1, "a", 0, True)
    assert valid(story) == "unknown"


def test_a_proved_error_stays_although_an_answer_lacks_its_version(story):
    story.write(0, 1, "a", 0)
    story.write(1, 2, "b", 0, 3)
    assert valid(story) is False


def test_each_resource_has_an_order_of_its_own(story):
    story.write(0, 1, "a", 0, 1)
    asked = {"resource": "stock", "value": "b", "version": 0}
    story.call(1, "write", 2, 2, asked, {"stored": 1})
    assert valid(story) is True
    story.call(1, "read", 3, 3, {"resource": "stock"}, {"value": None, "version": 0})
    assert valid(story) is False


def test_a_resource_that_never_answered_is_named_as_untested(story):
    story.write(0, 1, "a", 0, 1)
    story.read(2, 2, "a", 1)
    story.call(1, "read", 2, None, {"resource": "stock"})
    found = store(story.history(), {})
    assert found.valid is True
    assert found.details["untested"] == ["stock (it never answered)"]
    assert found.summary.endswith("Not tested: stock (it never answered).")


@pytest.mark.parametrize(("stored", "wrong"), [(None, "unknown"), (2, False)])
def test_it_is_named_as_well_where_another_is_wrong_or_unknown(story, stored, wrong):
    story.write(0, 1, "a", 0, stored)
    story.call(1, "read", 2, None, {"resource": "stock"})
    found = store(story.history(), {})
    assert found.valid == wrong
    assert found.summary.endswith(" Not tested: stock (it never answered).")
    assert found.details == {"operations": 1, "untested": ["stock (it never answered)"]}


def test_on_two_hosts_answers_are_in_order_only_beyond_the_bounds_of_both_clocks(story):
    clocks = {f"client-{n}": {"offset_ns": 0, "bound_ns": 4_000_000} for n in range(3)}
    story.write(0, 10, "a", 0, 1)
    story.read(1, 18, None, 0)
    assert valid(story) is False
    assert store(story.history(), {"clocks": clocks}).valid is True
    story.read(2, 18.1, None, 0)
    assert store(story.history(), {"clocks": clocks}).valid is False


def test_huge_versions_take_no_time(story):
    story.write(0, 1, "a", 0, 10**12)
    assert valid(story) is False


@given(st.integers(0, 2**32))
@settings(max_examples=400)
def test_the_verdict_is_that_of_trying_every_order(seed):
    ops, test = draw(Random(seed))
    assert store(History(ops), test).valid in verdict(ops, test)
