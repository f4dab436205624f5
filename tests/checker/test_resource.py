"""Each proof of a lost update or a phantom is found, and no sound run is blamed."""

from __future__ import annotations

import pytest

from fencepost.checker.resource import resource
from fencepost.checker.store import store
from tests.checker.resource_stories import TWO_HOSTS, kinds, two_holds
from tests.histories import MS, Story


def test_writes_that_follow_their_writer_s_read_are_fine(story):
    story.read(1, 10, None, 0)
    story.write(1, 20, "a", 0, 1)
    story.read(2, 30, "a", 1)
    story.write(2, 40, "b", 1, 2)
    story.read(1, 50, "b", 2)
    assert kinds(story) == []
    untested = "stale writes (no write was made under a hold)"
    assert resource(story.history(), {}).summary == (
        "2 accepted writes, each present and based on the version that its writer read. Not "
        f"tested: {untested}."
    )


def test_a_resource_that_accepted_nothing_is_unknown(story):
    story.write(1, 10, "a", 0, type="fail")
    story.write(2, 20, "b", 0, type="info")
    story.write(2, 25, "c", 0, type="fail")
    story.denied(3, 30, 40)
    found = resource(story.history(), {})
    assert found.valid == "unknown"
    assert found.summary == "No write was accepted: nothing was tested."
    assert (found.evidence, found.details) == ([], {"accepted": 0, "refused": 2})


def test_a_refused_write_damages_nothing(story):
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, type="fail")
    story.read(3, 30, "a", 1)
    assert kinds(story) == []


def test_a_lost_update_shows_in_the_version_that_the_resource_gave(story):
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, 2)
    assert kinds(story) == [("lost_update", "b")]
    what = resource(story.history(), {}).evidence[0]["what"]
    assert what.startswith(
        "'b', written by client-2 (process 2) and accepted by 0.020 s, built on version 0, but "
        "the resource stored it as version 2, on top of 1."
    )


def test_two_writes_on_one_version_prove_a_lost_update_without_numbers(story):
    story.write(1, 10, "a", 0)
    story.write(2, 20, "b", 0)
    assert kinds(story) == [("lost_update", "b")]


def test_a_read_that_shows_another_value_in_its_place_proves_a_lost_update(story):
    """The value that the writer of x had read is unknown; b should have been version 1."""
    story.write(1, 10, "x", None, type="info")
    story.write(2, 20, "b", 0)
    story.read(1, 30, "x", 1)
    assert kinds(story) == [("lost_update", "b")]


def test_a_later_version_read_before_the_write_was_sent_proves_a_lost_update(story):
    story.write(3, 5, "x", None, type="info")
    story.read(1, 10, "x", 5)
    story.write(2, 20, "b", 3)
    assert kinds(story) == [("lost_update", "b")]


def test_a_later_version_read_while_the_write_was_under_way_proves_nothing(story):
    story.write(3, 5, "x", None, type="info")
    story.write(2, 20, "b", 3, done=40)
    story.read(1, 30, "x", 5)
    assert kinds(story) == []


def test_a_write_of_unknown_outcome_counts_once_a_client_read_it(story):
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, type="info")
    assert kinds(story) == []
    story.read(3, 30, "b", 2)
    assert kinds(story) == [("lost_update", "b")]


def test_a_write_that_never_completed_counts_once_a_client_read_it(story):
    story.write(1, 10, "a", 0, 1)
    story.call(2, "write", 20, None, {"resource": "account", "value": "b", "version": 0})
    story.read(3, 30, "b", 2)
    assert kinds(story) == [("lost_update", "b")]


def test_the_damage_of_each_kind_is_counted(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 0, 2, hold="h1")
    found = resource(story.history(), {})
    assert found.details == {
        "accepted": 2,
        "refused": 0,
        "lost_update": 1,
        "missing": 0,
        "stale": 1,
        "phantom": 0,
        "untested": [],
    }


def test_a_refused_write_that_was_read_is_a_phantom_and_counts_as_accepted(story):
    story.write(1, 10, "b", 0, type="fail")
    story.read(2, 20, "b", 1)
    assert kinds(story) == [("phantom", "b")]
    found = resource(story.history(), {})
    assert found.details["accepted"] == 1
    assert found.evidence[0]["what"] == (
        "'b' was read by client-2 (process 2) at 0.020 s, and its write by client-1 (process 1) "
        "failed at 0.010 s. No fault was on at that time."
    )


def test_a_refused_write_that_was_applied_can_be_a_lost_update(story):
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, type="fail")
    story.read(3, 30, "b", 2)
    assert kinds(story) == [("lost_update", "b"), ("phantom", "b")]


def test_a_value_without_a_writer_is_a_phantom(story):
    story.read(2, 20, "x", 1)
    assert kinds(story) == [("phantom", "x")]
    what = resource(story.history(), {}).evidence[0]["what"]
    assert what.startswith(
        "'x' was read by client-2 (process 2) at 0.020 s, and no process had written it."
    )


def test_a_value_that_was_read_before_it_was_written_is_a_phantom(story):
    story.read(2, 10, "a", 1)
    story.write(1, 20, "a", 0, 1)
    assert kinds(story) == [("phantom", "a")]
    what = resource(story.history(), {}).evidence[0]["what"]
    assert "and client-1 (process 1) did not send it before 0.020 s." in what


def test_a_read_proves_a_write_of_unknown_outcome_only_if_no_other_wrote_its_value(story):
    story.write(1, 10, "a", 5, type="info")
    story.write(2, 20, "a", 0, 1)
    story.read(3, 30, "a", 1)
    assert kinds(story) == []
    assert resource(story.history(), {}).details["accepted"] == 1


def test_the_evidence_names_the_writer_and_the_read_that_showed_the_write(story):
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, type="info", done=25)
    story.read(3, 30, "b", 2, done=40)
    story.fault("pause", 5, 19, ["s1"])
    story.fault("pause", 22, 35, ["s2"])
    story.fault("pause", 41, 50, ["s3"])
    found = resource(story.history(), {})
    untested = "stale writes (no write was made under a hold)"
    assert found.summary == (
        "Of 2 accepted writes: 1 lost update (the write was based on a stale read). Not "
        f"tested: {untested}."
    )
    assert found.evidence == [
        {
            "kind": "lost_update",
            "what": "'b', written by client-2 (process 2) and accepted by 0.040 s, built on "
            "version 0, but the resource stored it as version 2, on top of 1. On at that time: "
            "pause of s2 (from 0.022 s).",
            "time_ns": 40 * MS,
            "resource": "account",
            "ops": [6, 13],
        }
    ]


def test_the_evidence_of_a_phantom_names_the_read_and_the_faults_that_were_on(story):
    story.read(3, 30, "b", 2, done=40)
    story.fault("pause", 5, 19, ["s1"])
    story.fault("pause", 22, 35, ["s2"])
    assert resource(story.history(), {}).evidence == [
        {
            "kind": "phantom",
            "what": (
                "'b' was read by client-3 (process 3) at 0.040 s, and no process had written "
                "it. On at that time: pause of s2 (from 0.022 s)."
            ),
            "time_ns": 40 * MS,
            "resource": "account",
            "ops": [6, 9],
        }
    ]


def test_properties_that_no_write_could_show_are_named_as_untested(story):
    story.write(1, 10, "a", None, 1)
    asked = {"resource": "stock"}
    story.call(1, "read", 20, 20, asked, {"value": None, "version": 0})
    assert resource(story.history(), {}).details["untested"] == [
        "stock (no write was accepted)",
        "lost updates (no write names the version that its writer read)",
        "missing writes (nothing was answered that began after an accepted write)",
        "stale writes (no write was made under a hold)",
    ]


def test_on_two_hosts_a_read_ended_before_a_write_only_beyond_the_bounds_of_both_clocks(story):
    story.read(2, 10, "a", 1)
    story.write(1, 18, "a", 0, 1)
    assert kinds(story) == [("phantom", "a")]
    assert kinds(story, TWO_HOSTS) == []


@pytest.mark.parametrize("values", [(1, 2), ([1], [2]), ({"a": 1}, {"a": 2}), (1, True), ("1", 1)])
def test_values_that_are_no_texts_are_distinguished(story, values):
    first, second = values
    story.write(1, 10, first, 0, 1)
    story.read(2, 20, second, 1)
    assert kinds(story) != []
    sound = Story()
    sound.write(1, 10, first, 0, 1)
    sound.read(2, 20, first, 1)
    assert kinds(sound) == []


@pytest.mark.parametrize(
    "written, shown",
    [(1, 1.0), ([{"n": 1}], [{"n": 1.0}]), ({"a": 1, "b": 2}, {"b": 2, "a": 1})],
)
def test_values_that_are_equal_as_json_are_one_value(story, written, shown):
    story.write(1, 10, written, 0, 1)
    story.read(2, 20, shown, 1)
    assert kinds(story) == []
    assert store(story.history(), {}).valid is True
