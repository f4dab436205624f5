"""A lock must not hand out a grant whose lease has expired."""

from __future__ import annotations

import pytest

from fencepost.checker.exclusion import lease_exclusion, mutual_exclusion
from tests.histories import MS


def grant(story, *, at=3700, until=3000, **answer):
    asked = {"lock": "orders", "ttl": 2000 * MS}
    answer = {"token": None, "deadline": until * MS, "hold": "a", **answer}
    story.call(1, "acquire", 1000, at, asked, answer)


def verdict(story, **test):
    return lease_exclusion(story.history(), test)


def test_a_grant_that_arrives_after_its_own_deadline_is_the_locks_failure(story):
    grant(story)
    found = verdict(story)
    assert (found.valid, found.details["late"]) == (False, 1)
    assert found.summary == (
        "1 of 1 holds was granted when its lease had expired; the first at 3.700 s."
    )
    assert found.evidence[0]["what"] == (
        "client-1 (process 1) was granted hold a at 3.700 s: the grant arrived 0.700 s after its "
        "lease had expired, by the lock's own deadline (3.000 s)."
    )
    assert (found.evidence[0]["lock"], found.evidence[0]["ops"]) == ("orders", [1])
    assert mutual_exclusion(story.history(), {}).valid is True


def test_late_grants_are_counted(story):
    grant(story)
    story.grant(2, "b", asked=4000, at=6000, until=5000)
    assert verdict(story).summary == (
        "2 of 2 holds were granted when their lease had expired; the first at 3.700 s."
    )


@pytest.mark.parametrize(("at", "valid"), [(3249, True), (3250, False)])
def test_a_busy_machine_may_be_late_by_less_than_a_quarter_of_a_second(story, at, valid):
    grant(story, at=at)
    assert verdict(story).valid is valid


@pytest.mark.parametrize(("assumed", "valid"), [(True, True), (False, False)])
def test_a_deadline_that_the_client_filled_in_does_not_count(story, assumed, valid):
    grant(story, assumed=assumed)
    assert verdict(story).valid is valid


def test_a_lock_that_names_no_deadline_is_never_late(story):
    story.grant(1, "a", asked=1000, at=9000, until=None)
    assert verdict(story).valid is True


@pytest.mark.parametrize(
    ("family", "node", "begin", "end", "valid"),
    [
        ("pause", "client-1", 2500, 3000, True),
        ("pause", "client-1", 3600, None, True),
        ("clock", "client-1", 2500, 3100, True),
        ("cpu", "client-1", 2500, 3100, True),
        ("gremlin", "client-2", 2500, 3100, True),
        ("pause", "client-1", 2500, 2999, False),
        ("pause", "client-1", 3701, 3900, False),
        ("pause", "client-2", 2500, 3900, False),
        ("pause", "redis-1", 2500, 3900, False),
        ("partition", "client-1", 2500, 3900, False),
        ("packet", "client-1", 2500, 3900, False),
    ],
)
def test_a_fault_that_may_have_stopped_the_client_in_that_time_excuses_the_lock(
    story, family, node, begin, end, valid
):
    links = {"links": [["client-1", "redis-1"]]} if family == "partition" else {}
    story.fault(family, begin, end, [node], arguments=links)
    grant(story)
    assert verdict(story).valid is valid


@pytest.mark.parametrize(
    ("hold", "at", "valid"), [(None, 3100, True), ("a", 3100, True), (None, 900, False)]
)
def test_a_lock_that_reported_the_loss_before_is_excused(story, hold, at, valid):
    story.op(at, 1, "info", "lost", {"lock": "orders", "hold": hold}, ["expired", "-"])
    grant(story)
    assert verdict(story).valid is valid


@pytest.mark.parametrize(("ends_with", "valid"), [("lease", False), ("close", True)])
def test_the_deadline_of_a_session_is_that_of_its_last_answer(story, ends_with, valid):
    grant(story)
    assert verdict(story, lock={"ends_with": ends_with}).valid is valid


@pytest.mark.parametrize("at", [3500, 3900])
def test_a_lease_that_is_renewed_in_the_background_has_not_expired(story, at):
    story.op(at, 1, "info", "renewed", {"lock": "orders", "hold": "a", "deadline": 5500 * MS})
    grant(story)
    assert verdict(story).valid is True


def test_an_overlap_and_a_late_grant_are_both_named(story):
    grant(story)
    story.grant(2, "b", at=5000, until=7000)
    story.grant(3, "c", at=6000, until=8000)
    found = verdict(story)
    assert [row["holds"] for row in found.evidence] == [["a"], ["b", "c"]]
    assert found.summary.count("of 3 holds was granted") == 2


def extend(story, *, at=3700, until=3000, **answer):
    story.grant(1, "a", at=100, until=2000)
    asked = {"lock": "orders", "hold": "a", "ttl": 2000 * MS}
    answer = {"deadline": None if until is None else until * MS, **answer}
    story.call(1, "extend", 1000, at, asked, answer)


def test_an_extend_that_is_answered_after_its_own_deadline_is_the_locks_failure(story):
    extend(story)
    found = verdict(story)
    assert (found.valid, found.details["late_extends"]) == (False, 1)
    assert found.summary == (
        "1 extend answered ok when the extended lease had expired; the first at 3.700 s."
    )
    (row,) = found.evidence
    assert row == {
        "what": (
            "client-1 (process 1) was answered at 3.700 s that hold a is extended: the answer came "
            "0.700 s after that lease had expired, by the lock's own deadline (3.000 s)."
        ),
        "time_ns": 3700 * MS,
        "lock": "orders",
        "holds": ["a"],
        "ops": [3],
    }
    assert mutual_exclusion(story.history(), {}).valid is True


@pytest.mark.parametrize(("at", "valid"), [(3249, True), (3250, False)])
def test_a_busy_machine_may_extend_late_by_less_than_a_quarter_of_a_second(story, at, valid):
    extend(story, at=at)
    assert verdict(story).valid is valid


@pytest.mark.parametrize("answer", [{"assumed": True}, {"until": None}])
def test_an_extend_that_names_no_deadline_is_never_late(story, answer):
    extend(story, **answer)
    assert verdict(story).valid is True


@pytest.mark.parametrize(("at", "valid"), [(3699, True), (3700, False), (3800, False)])
def test_a_lock_that_reported_the_loss_before_an_extend_is_excused(story, at, valid):
    story.op(at, 1, "info", "lost", {"lock": "orders", "hold": "a"}, ["expired", "-"])
    extend(story)
    assert verdict(story).valid is valid


@pytest.mark.parametrize(("ends_with", "valid"), [("lease", False), ("close", True)])
def test_the_extension_of_a_session_is_that_of_its_last_answer(story, ends_with, valid):
    extend(story)
    assert verdict(story, lock={"ends_with": ends_with}).valid is valid


def test_an_extend_of_a_lease_that_is_renewed_in_the_background_has_not_expired(story):
    story.op(1500, 1, "info", "renewed", {"lock": "orders", "hold": "a", "deadline": 5500 * MS})
    extend(story)
    assert verdict(story).valid is True


@pytest.mark.parametrize(
    ("family", "node", "begin", "end", "valid"),
    [
        ("pause", "client-1", 2500, 3000, True),
        ("pause", "client-1", 3700, None, True),
        ("pause", "client-1", 2500, 2999, False),
        ("pause", "client-1", 3701, 3900, False),
        ("pause", "client-2", 2500, 3900, False),
    ],
)
def test_a_fault_that_may_have_stopped_the_client_excuses_a_late_extend(
    story, family, node, begin, end, valid
):
    story.fault(family, begin, end, [node])
    extend(story)
    assert verdict(story).valid is valid


def test_the_first_of_several_late_extends_is_named(story):
    extend(story)
    story.grant(2, "b", at=4000, until=9000)
    asked = {"lock": "orders", "hold": "b", "ttl": 1000 * MS}
    story.call(2, "extend", 4100, 7000, asked, {"deadline": 5100 * MS})
    found = verdict(story)
    assert "2 extends answered ok when the extended lease had expired" in found.summary
    assert found.summary.endswith("the first at 3.700 s.")


@pytest.mark.parametrize("answered", [grant, extend])
def test_how_late_an_answer_was_is_told_to_the_millisecond(story, answered):
    answered(story, at=1_000_003_000)
    (row,) = verdict(story).evidence
    assert "1000000.000 s after" in row["what"]
