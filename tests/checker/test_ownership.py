"""Ownership names a process that ends another's hold, and promises that no op tested."""

from __future__ import annotations

import pytest

from tests.checker.ownership_stories import CLOCKS, lapsed_then_granted, verdict
from tests.histories import MS


def test_a_release_of_another_process_hold_is_theft(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(2, "h1", at=100)
    found = verdict(story)
    assert found.valid is False
    assert found.evidence == [
        {
            "what": (
                "process 2 released hold h1 of client-1 (process 1) at 0.100 s and was answered "
                "ok. No fault was on at that time."
            ),
            "time_ns": 100 * MS,
            "lock": "orders",
            "holds": ["h1"],
            "ops": [2, 3],
        }
    ]


def test_a_late_release_after_such_a_theft_is_one_of_its_own(story):
    lapsed_then_granted(story)
    story.release(3, "h1", at=500)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700)
    assert [row["holds"] for row in verdict(story).evidence] == [["h1"], ["h1", "h2"]]


def test_another_process_release_of_a_hold_that_was_over_ended_nothing(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100)
    story.release(2, "h1", at=200)
    story.grant(1, "h2", at=300, until=1300)
    story.release(2, "h2", at=1400)
    assert verdict(story).valid is True


def test_another_process_release_of_a_hold_that_was_over_may_end_the_next_one(story):
    lapsed_then_granted(story)
    story.release(3, "h1", at=1550)
    assert verdict(story).valid is True
    story.grant(3, "h3", at=1700, until=2700)
    assert [row["holds"] for row in verdict(story).evidence] == [["h1", "h2"]]


def test_another_process_release_at_the_end_of_a_hold_is_unknown(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100, done=300)
    story.release(2, "h1", at=150, done=200)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.evidence[0]["what"].endswith(" That hold may have ended before.")
    assert verdict(story, **CLOCKS).valid == "unknown"


@pytest.mark.parametrize(("done", "valid"), [(990, False), (992, "unknown")])
def test_it_is_theft_only_beyond_the_bounds_of_both_clocks(story, done, valid):
    story.grant(1, "h1", at=0, until=1000)
    story.release(2, "h1", at=done, done=done)
    assert verdict(story, **CLOCKS).valid == valid
    assert verdict(story).valid is False


def by(story, process, hold, at, *servers, until=2000):
    """Grant a hold by some servers."""
    asked = {"lock": "orders", "ttl": 1000 * MS}
    answer = {"hold": hold, "token": None, "deadline": until * MS, "granted_by": list(servers)}
    story.call(process, "acquire", at, at, asked, answer)


@pytest.mark.parametrize(("servers", "valid"), [(("s4", "s5"), True), (("s3", "s4", "s5"), False)])
def test_a_grant_by_other_servers_proves_no_loss(story, servers, valid):
    by(story, 1, "h1", 0, "s1", "s2", "s3", until=1000)
    by(story, 2, "h2", 1500, "s1", "s2", "s3", until=2500)
    story.release(1, "h1", at=1600)
    by(story, 3, "h3", 1700, *servers, until=2700)
    assert verdict(story).valid is valid


@pytest.mark.parametrize(("at", "valid"), [(2499, False), (2500, True), (9000, True)])
def test_a_hold_without_a_deadline_is_certain_for_its_ttl_only(story, at, valid):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=1500, until=None, ttl=1000)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=at, until=at + 1000)
    assert verdict(story).valid is valid


def test_without_a_ttl_a_hold_without_a_deadline_lasts(story):
    story.grant(1, "h1", at=0, until=1000)
    story.call(2, "acquire", 1500, 1500, {"lock": "orders"}, {"hold": "h2", "deadline": None})
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=9000, until=10000)
    assert verdict(story).valid is False


def test_such_a_theft_is_counted_once_even_if_its_victim_notices(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(2, "h1", at=100)
    story.extend(1, "h1", at=200, until=None, type="fail")
    story.grant(3, "h3", at=300, until=1300)
    story.release(2, "h1", at=350)
    story.extend(3, "h3", at=400, until=None, type="fail")
    found = verdict(story)
    assert len(found.evidence) == 2
    assert found.summary == (
        "2 of 2 releases ended the hold of another process. Not tested: a late release (none was "
        "sent after its own hold had ended)."
    )
    assert found.details["uncertain"] == 0


def test_an_extension_of_another_process_hold_ends_nothing(story):
    story.grant(1, "h1", at=0, until=1000)
    story.extend(2, "h1", at=100, until=1100)
    story.release(1, "h1", at=200)
    assert verdict(story).valid is True


def test_a_release_of_another_process_hold_that_is_refused_is_not(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(2, "h1", at=100, type="fail")
    story.release(1, "h1", at=200)
    assert verdict(story).valid is True


def test_holds_without_names_are_those_of_their_process(story):
    for process, at in ((1, 0), (2, 1500)):
        asked, answered = {"lock": "orders"}, {"deadline": (at + 1000) * MS}
        story.call(process, "acquire", at, at, asked, answered)
    story.call(1, "release", 1600, 1600, {"lock": "orders"})
    error = ["not-held", "it is gone"]
    story.call(2, "release", 1700, 1700, {"lock": "orders"}, type="fail", error=error)
    assert verdict(story).valid is False


def test_a_release_without_a_name_is_not_of_a_hold_that_has_one(story):
    story.grant(1, "h1", at=0, until=1000)
    story.call(1, "release", 1600, 1600, {"lock": "orders"})
    assert verdict(story).details["releases"] == 0


def test_properties_that_the_history_could_not_show_are_named(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100)
    found = verdict(story)
    assert found.valid is True
    assert found.summary == (
        "None of 1 release ended another's hold. Not tested: a late release (none was sent after "
        "its own hold had ended)."
    )
    story.grant(2, "h2", at=150, until=1150)
    story.release(2, "h2", at=1160, done=1170, type="info")
    assert verdict(story).summary == found.summary
    story.release(1, "h1", at=1180, type="fail")
    untested = ["a late release during another's hold"]
    assert verdict(story).details == {"releases": 1, "uncertain": 0, "untested": untested}
    story.grant(3, "h3", at=1190, until=2190)
    story.release(1, "h1", at=1200, type="fail")
    assert verdict(story).details == {"releases": 1, "uncertain": 0, "untested": []}


def test_without_a_release_that_was_answered_nothing_was_tested(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100, type="fail")
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.summary.startswith("No release was answered ok: nothing was tested. Not tested: ")
    assert (found.evidence, found.details["releases"]) == ([], 0)


def test_an_elector_whose_leaders_never_resign_has_nothing_that_could_be_wrong(story):
    story.grant(1, "h1", at=0, until=1000)
    elector = {"name": "x", "elector": True}
    found = verdict(story, lock=elector)
    assert (found.valid, found.summary) == (True, "No leader resigned. Not tested: resign.")
    assert verdict(story, lock={"name": "x"}).valid == "unknown"
    story.release(1, "h1", at=100, type="fail")
    assert verdict(story, lock=elector).valid == "unknown"


@pytest.mark.parametrize(("node", "valid"), [("client-3", False), ("client-1", "unknown")])
def test_the_end_of_a_hold_is_by_its_client_s_clock_if_another_client_released_it(
    story, node, valid
):
    """The release is sent before that end, and answered after the next grant and before its loss
    shows."""
    story.grant(1, "h1", at=0, until=100)
    story.release(3, "h1", at=50, done=300)
    story.grant(2, "h2", at=102, until=1000)
    story.grant(4, "h4", at=350, until=1350)
    clocks = {node: {"bound_ns": 20 * MS, "offset_ns": 0}}
    assert verdict(story, clocks=clocks).valid is valid
