"""Overlapping holds are reported, and holds that did not overlap are not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.checker.exclusion import lease_exclusion, mutual_exclusion
from fencepost.checker.facts.holds import holds
from fencepost.checker.history.history import History
from tests.checker.exclusion_stories import only, verdicts
from tests.histories import MS, Story, kept_on, over


def test_a_client_paused_past_its_lease_does_not_break_lease_exclusion():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.fault("pause", 100, 1500, ["client-1"])
    story.grant(2, "h2", at=1010, until=2010)
    story.release(1, "h1", at=1600, type="fail")
    assert verdicts(story) == (True, False)


def test_a_lock_granted_twice_while_leased_breaks_both():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=400, until=1400)
    assert verdicts(story) == (False, False)


def test_the_evidence_names_holders_times_lengths_and_active_faults():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.fault("clock", 300, 2000, ["redis-3"], arguments={"words": "redis-3 jumps"})
    story.grant(2, "h2", at=400, until=1400)
    verdict = lease_exclusion(story.history(), {})
    assert verdict.summary == (
        "1 of 2 holds was granted during another believed hold; the first at 0.400 s "
        "(likely: redis-3 jumps)."
    )
    assert verdict.evidence == [
        {
            "what": (
                "client-2 (process 2) was granted hold h2 at 0.400 s, while client-1 (process 1) "
                "had hold h1 since 0.000 s, whose lease ran until 1.000 s: two holders for "
                "0.600 s. A server may have forgotten it, or ended it early: redis-3 jumps (from "
                "0.300 s to 2.000 s)."
            ),
            "cause": [
                {
                    "sort": "forgot",
                    "what": "A server may have forgotten it, or ended it early: redis-3 jumps "
                    "(from 0.300 s to 2.000 s)",
                    "time_ns": 300 * MS,
                    "sure": False,
                    "family": "clock",
                    "nodes": ["redis-3"],
                }
            ],
            "time_ns": 400 * MS,
            "until_ns": 1000 * MS,
            "lock": "orders",
            "holds": ["h1", "h2"],
            "ops": [1, 5],
        }
    ]


def test_the_evidence_of_a_strict_overlap_says_when_and_how_the_first_hold_was_given_up():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=1010, until=2010)
    story.release(1, "h1", at=1600)
    verdict = mutual_exclusion(story.history(), {})
    assert verdict.summary == (
        "1 of 2 holds was granted during another strict hold; the first at 1.010 s "
        "(its holder kept it past its lease)."
    )
    assert verdict.evidence == [
        {
            "what": (
                "client-2 (process 2) was granted hold h2 at 1.010 s, while client-1 (process 1) "
                "had hold h1 since 0.000 s, which its holder gave up at 1.600 s (release): two "
                "holders for 0.590 s. The lease of hold h1 expired at 1.000 s. No fault "
                "explains why client-1 (process 1) had not given it up 0.010 s later."
            ),
            "cause": [over("h1", 1000), kept_on(1, 1000, 1010)],
            "time_ns": 1010 * MS,
            "until_ns": 1600 * MS,
            "lock": "orders",
            "holds": ["h1", "h2"],
            "ops": [1, 3],
        }
    ]


@pytest.mark.parametrize(
    ("checker", "kind"), [(lease_exclusion, "believed"), (mutual_exclusion, "strict")]
)
def test_a_verdict_without_overlaps_counts_the_compared_holds(checker, kind):
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=500)
    story.grant(2, "h2", at=600, until=1600)
    found = checker(story.history(), {"lock": {"ends_with": "close"}})
    assert found.valid is True
    assert found.summary == f"None of 2 holds overlapped another {kind} hold."
    assert found.evidence == []
    assert found.details == {
        "holds": 2,
        "failed_release": "ended",
        "ends_with": "close",
        "untested": [],
    }


def test_a_hold_that_was_never_released_is_reported_without_a_length():
    story = Story()
    story.grant(1, "h1", at=0, until=None)
    story.grant(2, "h2", at=400, until=None)
    evidence = mutual_exclusion(story.history(), {}).evidence[0]
    assert "which its holder never released: two holders." in evidence["what"]
    assert "Nothing in the history explains why the lock was granted" in evidence["what"]
    assert evidence["until_ns"] is None


def test_the_length_of_an_overlap_is_given_to_the_millisecond_however_long_it_is():
    story = Story()
    story.grant(1, "h1", at=0, until=2_000_000_000)
    story.grant(2, "h2", at=400, until=3_000_000_000)
    what = lease_exclusion(story.history(), {}).evidence[0]["what"]
    assert ": two holders for 1999999.600 s." in what


def test_holds_that_touch_do_not_overlap():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=500)
    story.grant(2, "h2", at=500, until=700)
    story.grant(3, "h3", at=700, until=900)
    assert lease_exclusion(story.history(), {}).valid is True


def test_holds_of_two_locks_never_overlap():
    story = Story()
    story.grant(1, "h1", at=0, until=1000, lock="a")
    story.grant(2, "h2", at=100, until=1000, lock="b")
    assert verdicts(story) == (True, True)
    story.grant(3, "h3", at=200, until=1000, lock="b")
    assert verdicts(story) == (False, False)


def test_a_third_holder_is_named_though_the_second_had_gone():
    """The first hold outlasts the second, and the third overlaps the first."""
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=100, until=200)
    story.grant(3, "h3", at=500, until=1500)
    evidence = lease_exclusion(story.history(), {}).evidence
    assert [row["holds"] for row in evidence] == [["h1", "h2"], ["h1", "h3"]]


@pytest.mark.parametrize("checker", [lease_exclusion, mutual_exclusion])
def test_a_lock_that_was_never_granted_is_unknown(checker):
    story = Story()
    story.denied(1, 0, 100)
    found = checker(story.history(), {})
    assert found.valid == "unknown"
    assert found.summary == "The lock was never granted: nothing was tested."
    assert found.evidence == []
    assert found.details == {"holds": 0, "failed_release": "ended", "ends_with": "lease"}


def clocks(bound, *clients):
    return {f"client-{n}": {"offset_ns": 0, "bound_ns": bound * MS} for n in clients}


@pytest.mark.parametrize(("start", "valid"), [(991, False), (992, True), (993, True)])
def test_an_overlap_within_the_bounds_of_two_hosts_clocks_is_no_overlap(start, valid):
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=start, until=2000)
    found = lease_exclusion(story.history(), {"clocks": clocks(4, 1, 2)})
    assert found.valid is valid
    assert found.details["uncertain"] == (1 if valid else 0)


def both(story, **test):
    return [
        found(story.history(), {"clocks": clocks(4, 1, 2), **test})
        for found in (lease_exclusion, mutual_exclusion)
    ]


def test_the_certain_overlaps_of_a_kind_of_hold_are_not_counted_as_uncertain():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=1100, until=2000)
    lease, strict = both(story)
    assert (lease.valid, strict.valid) == (True, False)
    assert (lease.details["uncertain"], strict.details["uncertain"]) == (0, 0)


def test_the_effect_of_a_failed_release_decides_which_overlaps_are_uncertain():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100, type="fail", kind="no-quorum")
    story.grant(2, "h2", at=200, until=2000)
    for found in both(story, failed_release="nothing"):
        assert (found.valid, found.details["uncertain"]) == (False, 0)


def test_the_summary_counts_the_holds_that_were_granted_too_early():
    story = Story()
    for number in (1, 2, 3):
        story.grant(number, f"h{number}", at=number, until=1000)
    found = lease_exclusion(story.history(), {})
    assert found.summary.startswith("2 of 3 holds were granted during another believed hold;")


def test_on_one_host_the_bounds_of_its_clock_do_not_matter():
    story = Story()
    for process in (1, 6):
        story.grant(process, f"h{process}", at=process, until=10)
    history = story.history()
    ops = [replace(op, node="client-1") for op in history.ops]
    assert lease_exclusion(History(ops), {"clocks": clocks(4, 1)}).valid is False


def test_a_short_hold_deep_within_another_is_an_overlap_whatever_the_bounds():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=500, until=501)
    story.release(2, "h2", at=501)
    assert verdicts(story, clocks=clocks(4, 1, 2)) == (False, False)


def test_an_exclusive_hold_during_a_shared_one_is_an_overlap_in_either_order():
    for first, second in (("shared", None), (None, "shared")):
        story = Story()
        for process, mode in ((1, first), (2, second)):
            asked = {"lock": "orders", "ttl": 1000 * MS} | ({"mode": mode} if mode else {})
            answer = {"hold": f"h{process}", "token": None, "deadline": 1000 * MS}
            story.call(process, "acquire", process, process, asked, answer)
        assert verdicts(story) == (False, False)


def test_untested_promises_are_named():
    story = Story()
    story.grant(1, "h", at=0, until=None)
    believed = lease_exclusion(story.history(), {})
    assert believed.details["untested"] == [
        "two clients that want one lock",
        "a lease that the client can see",
    ]
    strict = mutual_exclusion(story.history(), {})
    assert strict.details["untested"] == ["two clients that want one lock"]
    assert strict.summary.endswith("Not tested: two clients that want one lock.")
    story.grant(2, "h2", at=2000, until=3000)
    story.release(1, "h", at=1000)
    assert lease_exclusion(story.history(), {}).details["untested"] == []


def test_a_client_that_continues_as_another_process_is_the_same_client():
    story = Story()
    for process in (1, 2):
        story.grant(process, f"h{process}", at=1000 * process, until=1000 * process + 100)
    ops = [replace(op, node="client-1") for op in story.history()]
    found = lease_exclusion(History(ops), {})
    assert found.details["untested"] == ["two clients that want one lock"]


def test_a_grant_that_names_no_lock_is_of_the_lock_without_a_name():
    story = Story()
    story.call(1, "acquire", 10, 10, {}, {"hold": "h", "deadline": None})
    assert only(story).lock == ""


def test_a_hold_without_a_name_goes_by_the_position_of_its_grant():
    story = Story()
    for at in (10, 20):
        story.call(1, "acquire", at, at, {"lock": "orders"}, {"deadline": None})
    assert [hold.name for hold in holds(story.history())] == ["1", "3"]
