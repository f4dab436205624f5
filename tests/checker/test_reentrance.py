"""A lock that promises to be reentrant refuses no process that has it. Times are in ms."""

from __future__ import annotations

import pytest

from fencepost.checker.liveness import liveness

REENTRANT = {"promises": {"reentrant": True}}


def told(story, **test):
    """Judge a story that another client's turn ends, so that something was tested."""
    story.grant(9, "last", 60_000, 61_000)
    story.release(9, "last", 60_100, 60_200)
    return liveness(story.history(), {**REENTRANT, **test})


def refused(found):
    return [row for row in found.evidence if "asked again" in row["what"]]


def test_a_holder_that_asks_again_is_not_refused(story):
    story.grant(1, "a", 100, 5000)
    story.denied(1, 1000, 1100)
    found = told(story)
    assert found.valid is False
    (row,) = refused(found)
    assert row["what"] == (
        "client-1 (process 1) asked again for the lock at 1.000 s and was refused, though it had "
        "hold a of it and the lock promises to be reentrant."
    )
    assert (row["ops"], row["time_ns"], row["valid"]) == ([1, 2, 3], 1_100_000_000, False)
    assert liveness(story.history(), {}).valid is True


@pytest.mark.parametrize(("until", "valid"), [(1100, True), (1101, False)])
def test_its_lease_must_run_until_the_refusal(story, until, valid):
    story.grant(1, "a", 100, until)
    story.denied(1, 1000, 1100)
    assert told(story).valid is valid


def test_a_lease_that_an_extend_began_anew_shows_nothing(story):
    story.grant(1, "a", 100, 500)
    story.extend(1, "a", 600, 5000)
    story.denied(1, 1000, 1100)
    assert told(story).valid is True


def test_a_hold_that_was_given_back_shows_nothing(story):
    story.grant(1, "a", 100, 5000)
    story.release(1, "a", 200, 300)
    story.denied(1, 1000, 1100)
    assert told(story).valid is True


def test_a_reader_that_asks_for_the_lock_alone_may_be_refused(story):
    story.grant(1, "a", 100, 5000, shared=True)
    story.denied(1, 1000, 1100)
    assert told(story).valid is True


def test_another_process_may_be_refused(story):
    story.grant(1, "a", 100, 5000)
    story.denied(2, 1000, 1100)
    assert told(story).valid is True


def test_a_refusal_before_the_grant_is_none_of_a_holder(story):
    story.denied(1, 0, 50)
    story.grant(1, "a", 100, 5000)
    assert told(story).valid is True


def test_a_hold_of_another_lock_shows_nothing(story):
    story.grant(1, "a", 100, 5000, lock="other")
    story.denied(1, 1000, 1100)
    assert told(story).valid is True


@pytest.mark.parametrize(("at", "valid"), [(99, False), (100, True), (1100, True), (1101, False)])
def test_a_grant_to_another_process_meanwhile_is_judged_as_such(story, at, valid):
    story.grant(1, "a", 100, 5000)
    story.grant(2, "b", at, 5000)
    story.release(2, "b", at, at)
    story.denied(1, 1000, 1100)
    assert bool(refused(told(story))) is not valid


@pytest.mark.parametrize(
    ("begin", "end", "valid"),
    [(0, 99, False), (0, 100, True), (1100, 1200, True), (1101, 1200, False)],
)
def test_a_fault_may_have_taken_the_lock_from_it(story, begin, end, valid):
    story.fault("kill", begin, end, ["redis-1"])
    story.grant(1, "a", 100, 5000)
    story.denied(1, 1000, 1100)
    assert bool(refused(told(story, servers=["redis-1"]))) is not valid


def test_only_a_refusal_by_the_lock_counts(story):
    story.grant(1, "a", 100, 5000)
    asked = {"lock": "orders", "ttl": 1_000_000_000}
    story.call(1, "acquire", 1000, 1100, asked, type="fail", error=["unreachable", "no"])
    assert told(story).valid is True


def test_one_refusal_counts_once(story):
    story.grant(1, "a", 100, 5000)
    story.grant(1, "b", 200, 5000)
    story.denied(1, 1000, 1100)
    assert len(refused(told(story))) == 1


@pytest.mark.parametrize(
    ("type", "kind"), [("info", "timeout"), ("fail", "timeout"), ("fail", "no-quorum")]
)
@pytest.mark.parametrize(("done", "valid"), [(3000, True), (3001, False)])
def test_a_holder_that_waits_for_itself_for_longer_than_the_bound_is_not_granted_the_lock(
    story, type, kind, done, valid
):
    story.grant(1, "a", 100, 9000)
    asked = {"lock": "orders", "ttl": 1_000_000_000}
    story.call(1, "acquire", 1000, done, asked, type=type, error=[kind, "no"])
    found = refused(told(story, liveness_bound_s=2))
    assert bool(found) is not valid
    if found:
        assert found[0]["what"] == (
            "client-1 (process 1) asked again for the lock at 1.000 s and waited in vain until "
            "3.000 s, though it had hold a of it and the lock promises to be reentrant."
        )
        assert (found[0]["ops"], found[0]["time_ns"]) == ([1, 2, 3], 3_000_000_000)


@pytest.mark.parametrize(("bound", "valid"), [(60.199, False), (60.2, True)])
def test_one_that_waits_until_the_history_ends_waits_as_well(story, bound, valid):
    story.grant(1, "a", 0, 100_000)
    story.call(1, "acquire", 0, None, {"lock": "orders", "ttl": 1_000_000_000})
    story.grant(9, "last", 60_000, 61_000, lock="other")
    story.release(9, "last", 60_100, 60_200, lock="other")
    found = refused(liveness(story.history(), {**REENTRANT, "liveness_bound_s": bound}))
    assert bool(found) is not valid
    if found:
        assert found[0]["ops"] == [1, 2]


@pytest.mark.parametrize(
    ("type", "kind"), [("info", "killed"), ("info", "crashed"), ("fail", "unreachable")]
)
def test_one_that_dies_by_itself_or_reaches_no_server_shows_nothing(story, type, kind):
    story.grant(1, "a", 100, 9000)
    asked = {"lock": "orders", "ttl": 1_000_000_000}
    story.call(1, "acquire", 1000, 5000, asked, type=type, error=[kind, "no"])
    assert not refused(told(story, liveness_bound_s=2))


@pytest.mark.parametrize(("until", "valid"), [(3000, True), (3001, False)])
def test_its_lease_must_run_until_the_bound(story, until, valid):
    story.grant(1, "a", 100, until)
    asked = {"lock": "orders", "ttl": 1_000_000_000}
    story.call(1, "acquire", 1000, 8000, asked, type="info", error=["timeout", "no"])
    assert bool(refused(told(story, liveness_bound_s=2))) is not valid


def test_a_slow_grant_is_one(story):
    story.grant(1, "a", 100, 9000)
    story.grant(1, "b", 5000, 9000, asked=1000)
    assert not refused(told(story, liveness_bound_s=2))


def test_each_refusal_counts(story):
    story.grant(1, "a", 100, 5000)
    story.denied(1, 1000, 1100)
    story.denied(1, 1200, 1300)
    assert len(refused(told(story))) == 2


def test_any_hold_of_the_process_will_do(story):
    story.grant(1, "a", 100, 1050)
    story.grant(1, "b", 200, 5000)
    story.denied(1, 1000, 1100)
    (row,) = refused(told(story))
    assert row["ops"][0] == 3


@pytest.mark.parametrize(("ordered", "valid"), [(3000, True), (3001, False)])
def test_one_that_was_killed_had_waited_until_then(story, ordered, valid):
    story.grant(1, "a", 100, 9000)
    asked = {"lock": "orders", "ttl": 1_000_000_000}
    story.call(1, "acquire", 1000, 4000, asked, type="info", error=["killed", "-"])
    story.fault("kill", ordered, 3500, ["client-1"], processes=[1])
    assert bool(refused(told(story, liveness_bound_s=2))) is not valid
