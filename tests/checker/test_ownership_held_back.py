"""A release whose client is stopped between its check and its delete has not taken effect yet."""

from __future__ import annotations

import pytest

from tests.checker.ownership_stories import CLOCKS, verdict
from tests.histories import MS

AT = "at between-check-and-delete"


def robbed(story, stopped=910, went_on=1600, at=AT, process=1, asked=950, **fault):
    """1 checks in time and deletes late; 2 asked within 1's lease; 3 is granted the lock."""
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=900, done=1700)
    story.grant(2, "h2", at=1200, until=3000, asked=asked)
    story.grant(3, "h3", at=1800, until=4000)
    story.fault("pause", stopped, went_on, ["client-1"], at=at, process=process, **fault)
    return story


def test_a_delete_delayed_until_another_held_the_lock_is_theft(story):
    found = verdict(robbed(story))
    assert found.valid is False
    (row,) = found.evidence
    assert row["holds"] == ["h1", "h2"]
    assert row["time_ns"] == 1700 * MS
    assert "a late release" not in found.details["untested"]


@pytest.mark.parametrize(
    "told",
    [
        {"at": "wherever it was"},
        {"at": "at before-write"},
        {"process": 2},
        {"proved": False},
        {"went_on": None},
        {"stopped": 899},
        {"went_on": 1701},
        {"stopped": 910, "went_on": 1199},
    ],
)
def test_a_stop_with_less_evidence_leaves_it_unknown(story, told):
    found = verdict(robbed(story, **told))
    assert found.valid == "unknown"
    assert "may have come during its own hold" in found.evidence[0]["what"]


@pytest.mark.parametrize(("went_on", "valid"), [(1200, False), (1700, False)])
def test_a_release_is_delayed_until_its_client_resumed_and_no_longer(story, went_on, valid):
    assert verdict(robbed(story, went_on=went_on)).valid is valid


def test_a_fault_of_another_family_stops_no_client(story):
    story = robbed(story, went_on=None, at="wherever it was")
    story.fault("cpu", 911, 1600, ["client-1"], at=AT, process=1)
    assert verdict(story).valid == "unknown"


def test_a_hold_that_ended_before_the_client_resumed_was_not_ended_by_it(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=900, done=1700)
    story.grant(2, "h2", at=1200, until=3000, asked=950)
    story.grant(3, "h3", at=1500, until=4000)
    story.fault("pause", 910, 1600, ["client-1"], at=AT, process=1)
    assert verdict(story).valid is True


def test_a_client_that_resumes_during_its_own_hold_may_end_it(story):
    story.grant(1, "h1", at=0, until=2000)
    story.release(1, "h1", at=900, done=1700)
    story.grant(2, "h2", at=1200, until=3000, asked=950)
    story.grant(3, "h3", at=1800, until=4000)
    story.fault("pause", 910, 1600, ["client-1"], at=AT, process=1)
    assert verdict(story).valid is True


def test_a_release_without_an_answer_is_open_though_it_was_delayed(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=900, done=1700, type="info")
    story.grant(2, "h2", at=1200, until=3000, asked=950)
    story.grant(3, "h3", at=1800, until=4000)
    story.fault("pause", 910, 1600, ["client-1"], at=AT, process=1)
    found = verdict(story)
    assert found.valid == "unknown"
    assert "the outcome of that release is unknown" in found.evidence[0]["what"]


@pytest.mark.parametrize(
    ("stopped", "went_on", "valid"),
    # The offset between a client's clock and the harness' own is up to 4 ms, between two clients' 8
    # ms.
    [(904, 1212, False), (903, 1212, "unknown"), (904, 1211, "unknown"),
     (904, 1704, False), (904, 1705, "unknown")],
)  # fmt: skip
def test_bounds_of_clocks_leave_the_verdict_unknown(story, stopped, went_on, valid):
    assert verdict(robbed(story, stopped, went_on), **CLOCKS).valid == valid


def test_a_loss_perhaps_noticed_before_the_client_resumed_accuses_no_client_for_certain(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=900, done=1700)
    story.grant(2, "h2", at=1200, until=3000, asked=950)
    story.grant(3, "h3", at=1500, until=4000)
    # By client-1's clock it resumed at 1505 at the earliest, which may be 1497 by client-3's.
    story.fault("pause", 910, 1509, ["client-1"], at=AT, process=1)
    assert verdict(story, **CLOCKS).valid == "unknown"


@pytest.mark.parametrize(("until", "valid"), [(1600, "unknown"), (1601, True)])
def test_a_client_that_resumes_as_its_own_hold_ends_may_end_another_s(story, until, valid):
    story.grant(1, "h1", at=0, until=until)
    story.release(1, "h1", at=900, done=1700)
    story.grant(2, "h2", at=1200, until=3000, asked=950)
    story.grant(3, "h3", at=1800, until=4000)
    story.fault("pause", 910, 1600, ["client-1"], at=AT, process=1)
    assert verdict(story).valid == valid
