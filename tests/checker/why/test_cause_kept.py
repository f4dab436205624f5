"""A fault is a sure cause only if it was on when the lease expired and lasted until the act."""

from __future__ import annotations

import pytest

from fencepost.checker.exclusion import mutual_exclusion
from fencepost.checker.resource import resource
from tests.checker.cause_stories import TEST, links
from tests.histories import Story


def kept(start, end, family="pause", **fault):
    """Two holders, the first of which had a lease until 1.1 s; the second is granted at 2.1 s."""
    story = Story()
    story.grant(1, "h1", at=100, until=1100)
    story.grant(2, "h2", at=2100, until=3100)
    story.release(1, "h1", at=4000)
    story.fault(family, start, end, ["client-1"], **fault)
    return story


def outcome(story, test=TEST):
    _, found, _ = links(mutual_exclusion, story, test)
    return [(link["sort"], link["sure"]) for link in found[1:]]


SURE, LIKELY, NONE = [("kept-by-fault", True)], [("kept-by-fault", False)], [("kept-on", True)]


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (500, 2100, SURE),
        (1100, 2100, SURE),
        (500, 2000, SURE),  # a tenth of the time is left to wake up in
        (500, 1999, LIKELY),
        (500, 1100, LIKELY),
        (1101, 2100, LIKELY),  # it was not on when the lease expired, but for most of the time
        (1599, 2100, LIKELY),
        (1601, 2100, NONE),
        (200, 1099, NONE),
        (10, 50, NONE),
    ],
)
def test_a_stop_is_sure_if_it_was_on_at_the_end_of_the_lease_and_nearly_until_the_next_grant(
    start, end, found
):
    assert outcome(kept(start, end)) == found


def test_a_pause_that_ended_before_the_lease_did_explains_nothing():
    story = kept(200, 1000)
    story.fault("pause", 1010, 1090, ["client-1"])
    assert outcome(story) == NONE


@pytest.mark.parametrize(
    ("family", "fault"),
    [
        ("pause", {"proved": False}),
        ("pause", {"arguments": {"threads": "renewal"}}),
        ("packet", {"arguments": {"kind": "delay"}}),
        ("cpu", {}),
    ],
)
def test_only_a_stopped_process_is_known_to_be_held_up_for_as_long_as_the_fault_lasts(
    family, fault
):
    assert outcome(kept(500, 2200, family, **fault)) == LIKELY


@pytest.mark.parametrize(("at", "found"), [(700, LIKELY), (2100, SURE)])
def test_a_process_that_wrote_an_event_while_it_should_have_been_stopped_was_not(at, found):
    story = kept(500, 2100)
    story.op(at, 1, "info", "lost", {"lock": "orders", "hold": "other"}, ["lost", "-"])
    assert outcome(story) == found


@pytest.mark.parametrize(("process", "found"), [(1, SURE), (7, LIKELY)])
def test_a_stop_of_another_process_of_the_holder_s_node_is_likely(process, found):
    assert outcome(kept(500, 2100, process=process)) == found


@pytest.mark.parametrize(
    ("family", "start", "found"),
    [
        ("strange", 500, LIKELY),
        ("strange", 1700, NONE),  # it was on for less than half of the time
        ("clock", 500, NONE),
    ],
)
def test_a_fault_of_an_unknown_family_without_targets_may_have_struck_the_holder(
    family, start, found
):
    story = kept(10, 50)
    story.fault(family, start, 2200, [], name="nowhere")
    assert outcome(story) == found


def test_a_fault_without_targets_is_named_by_its_family():
    story = kept(10, 50)
    story.fault("strange", 500, 2200, [], name="nowhere")
    (piece,) = mutual_exclusion(story.history(), TEST).evidence
    assert "This may have kept client-1 from giving it up: strange (from 0.500 s" in piece["what"]


def test_a_stop_that_was_never_seen_to_end_is_likely():
    assert outcome(kept(500, None)) == LIKELY


@pytest.mark.parametrize(("f", "found"), [("read", NONE), ("release", LIKELY)])
def test_a_client_that_began_an_op_under_a_fault_was_not_kept_by_it(f, found):
    story = kept(500, 5000, "packet", arguments={"kind": "delay"})
    if f == "read":
        story.read(1, 1500, None, 0)
    assert outcome(story) == found


def test_a_client_whose_lease_is_renewed_works_on_while_a_fault_keeps_the_renewal_away():
    story = kept(500, 5000, "packet", arguments={"kind": "delay"})
    story.read(1, 1500, None, 0)
    story.op(150, 1, "info", "renewed", {"lock": "orders", "hold": "h1", "deadline": 1100 * 10**6})
    assert outcome(story) == LIKELY


def test_a_stop_within_the_bounds_of_the_clocks_is_likely():
    test = TEST | {"clocks": {"client-1": {"offset_ns": 0, "bound_ns": 5_000_000}}}
    assert outcome(kept(1095, 2105), test) == SURE
    assert outcome(kept(1096, 2105), test) == LIKELY


def test_a_client_that_sees_no_lease_is_likely_kept_by_the_fault_at_the_next_grant_or_before():
    for start, end in ((500, 2200), (500, 600)):
        story = Story()
        story.grant(1, "h1", at=100, until=None)
        story.fault("pause", 200, 300, ["client-1"], name="earlier")
        story.fault("pause", start, end, ["client-1"], name="last")
        story.grant(2, "h2", at=2100, until=3100)
        _, found, _ = links(mutual_exclusion, story)
        assert [(link["sort"], link["sure"]) for link in found] == LIKELY
        assert found[0]["time_ns"] == start * 10**6


def sleeper(sent, done, *faults, stored=(1, 2)):
    """A sleeper's write is accepted between another holder's read and write."""
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.read(1, 10, None, 0)
    for family, start, end, more in faults:
        story.fault(family, start, end, ["client-1"], **more)
    story.grant(2, "h2", at=1500, until=9000)
    story.read(2, 1510, None, 0)
    story.write(1, sent, "late", 0, stored[0], done=done, hold="h1")
    story.write(2, 3000, "sound", 0, stored[1], done=3010, hold="h2")
    return story


PAUSE = ("pause", 60, 2000, {})


@pytest.mark.parametrize("sent", [50, 2005])
def test_a_lost_update_by_a_late_write_is_told_of_the_sleeper(sent):
    sorts, found, _ = links(resource, sleeper(sent, 2010, PAUSE))
    assert sorts == ["lease-over", "kept-by-fault"]
    assert (found[1]["nodes"], found[1]["sure"]) == (["client-1"], True)
    what = resource(sleeper(sent, 2010, PAUSE).history(), {}).evidence[0]["what"]
    assert what.startswith("'sound', written by client-2 (process 2) and accepted by 3.010 s")
    assert f"; 'late' was sent by client-1 (process 1) under hold h1 at {sent / 1000:.3f} s" in what
    assert "accepted by 2.010 s. The lease of hold h1 expired at 1.000 s. This kept" in what


def test_a_late_write_whose_version_is_not_known_is_told_of_the_sleeper_too():
    sorts, _, _ = links(resource, sleeper(50, 2010, PAUSE, stored=(None, None)))
    assert sorts == ["lease-over", "kept-by-fault"]


def test_a_late_write_that_no_fault_explains_is_told_of_the_client_that_worked_on():
    assert links(resource, sleeper(2005, 2010))[0] == ["lease-over", "kept-on"]


def test_a_write_that_another_fault_may_have_held_back_makes_the_pause_likely():
    delay = {"source": "client-1", "to": "storage"}
    both = (PAUSE, ("delay", 40, 1990, {"arguments": delay}))
    _, found, _ = links(resource, sleeper(50, 2010, *both))
    assert [(link["sort"], link["sure"]) for link in found[1:]] == [*LIKELY, *LIKELY]
    _, found, _ = links(resource, sleeper(2005, 2010, *both))
    assert ("kept-by-fault", True) in [(link["sort"], link["sure"]) for link in found]


def test_two_holders_of_running_leases_that_lost_an_update_are_explained_by_the_second_grant():
    story = Story()
    story.grant(1, "h1", at=0, until=9000, ttl=9000)
    story.read(1, 10, None, 0)
    story.grant(2, "h2", at=1500, until=9000, ttl=9000)
    story.read(2, 1510, None, 0)
    story.write(1, 2000, "one", 0, 1, hold="h1")
    story.write(2, 3000, "two", 0, 2, hold="h2")
    assert links(resource, story)[0] == ["none"]


def test_a_write_that_may_have_been_accepted_in_time_is_no_sure_effect_of_a_pause():
    """Nothing shows that it was accepted after its lease had expired."""
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.fault("pause", 60, 2000, ["client-1"])
    story.read(2, 510, None, 0)
    story.grant(2, "h2", at=1500, until=9000)
    story.write(1, 50, "first", 0, 1, done=2010, hold="h1")
    story.write(2, 3000, "second", 0, 2, hold="h2")
    _, found, _ = links(resource, story)
    assert [(link["sort"], link["sure"]) for link in found[1:]] == LIKELY
