"""A lock that refuses most releases, or most extends, in calm gives its holds up. Times in ms."""

from __future__ import annotations

import pytest

from fencepost.checker.linearizable import linearizable
from tests.histories import MS


def told(story, **test):
    return linearizable(story.history(), test)


def refused(story, *numbers, process=1, until=900, **more):
    """Add turns of a second each, whose releases are refused half a second after the grant."""
    for number in numbers:
        at = 1000 * number
        story.grant(process, f"h{number}", at, at + until, asked=at)
        story.release(process, f"h{number}", at + 500, at + 500, type="fail", **more)


def test_a_lock_that_refuses_three_releases_in_their_leases_gives_holds_up(story):
    refused(story, 1, 2, 3)
    found = told(story)
    assert found.valid is False
    assert found.summary == (
        "3 releases of the lock were refused in calm, within their leases, and none answered ok: "
        "the service had given these holds up. The first was hold h1 of client-1 (process 1), at "
        "1.500 s."
    )
    (row,) = found.evidence
    assert (row["time_ns"], row["lock"]) == (1500 * MS, "orders")
    assert row["ops"] == [2, 3, 6, 7, 10, 11]


def test_two_may_be_requests_that_a_library_sent_twice(story):
    refused(story, 1, 2)
    assert told(story).valid is True


@pytest.mark.parametrize(("ok", "valid"), [(2, False), (3, True)])
def test_as_many_releases_that_were_answered_ok_clear_the_lock(story, ok, valid):
    refused(story, 1, 2, 3)
    for number in range(ok):
        at = 5000 + 1000 * number
        story.grant(2, f"b{number}", at, at + 900)
        story.release(2, f"b{number}", at + 100, at + 100)
    found = told(story)
    assert found.valid is valid
    if not valid:
        assert (
            "3 releases of the lock were refused in calm, within their leases, and 2 answered ok"
            in (found.summary)
        )


def extends(story, *numbers, type="fail", kind="not-held", released="ok"):
    """Add turns of a second each, in which the holder asks for a longer lease, and then releases
    the lock."""
    for number in numbers:
        at, hold = 1000 * number, f"h{number}"
        story.grant(1, hold, at, at + 900, asked=at)
        asked = {"lock": "orders", "hold": hold, "ttl": 900 * MS}
        answer = {"deadline": (at + 1200) * MS} if type == "ok" else {}
        error = None if type == "ok" else [kind, "-"]
        story.call(1, "extend", at + 300, at + 300, asked, answer, type=type, error=error)
        story.release(1, hold, at + 500, at + 500, type=released)


def test_a_lock_that_refuses_three_extends_in_their_leases_gives_holds_up(story):
    extends(story, 1, 2, 3)
    found = told(story)
    assert found.valid is False
    assert found.summary.startswith(
        "3 extends of the lock were refused in calm, within their leases, and none answered ok"
    )
    assert [row["ops"] for row in found.evidence] == [[2, 3, 8, 9, 14, 15]]


@pytest.mark.parametrize(("ok", "valid"), [((4, 5), False), ((4, 5, 6), True)])
def test_as_many_extends_that_were_answered_ok_clear_the_lock(story, ok, valid):
    extends(story, 1, 2, 3)
    extends(story, *ok, type="ok")
    assert told(story).valid is valid


def test_a_lock_may_refuse_most_extends_and_most_releases(story):
    extends(story, 1, 2, 3, released="fail")
    assert len(told(story).evidence) == 2


def test_extends_and_releases_are_not_added_up(story):
    extends(story, 1, 2)
    refused(story, 3)
    assert told(story).valid is True


def test_an_extend_of_a_hold_whose_release_was_tried_before_does_not_count(story):
    extends(story, 1, 2)
    story.grant(1, "h3", 3000, 3900, asked=3000)
    story.release(1, "h3", 3200, 3200)
    asked = {"lock": "orders", "hold": "h3", "ttl": 900 * MS}
    story.call(1, "extend", 3300, 3300, asked, type="fail", error=["not-held", "-"])
    assert told(story).valid is True


def test_only_the_first_extend_of_a_hold_counts(story):
    extends(story, 1, 2)
    story.grant(1, "h3", 3000, 3900, asked=3000)
    asked = {"lock": "orders", "hold": "h3", "ttl": 900 * MS}
    for at, kind in ((3100, "no-quorum"), (3200, "not-held")):
        story.call(1, "extend", at, at, asked, type="fail", error=[kind, "-"])
    assert told(story).valid is True


def test_each_lock_is_judged_by_itself(story):
    refused(story, 1, 2, 3)
    story.grant(2, "b", 5000, 5900, lock="other")
    story.release(2, "b", 5100, 5200, lock="other")
    found = told(story)
    assert (found.valid, [row["lock"] for row in found.evidence]) == (False, ["orders"])


@pytest.mark.parametrize(("until", "valid"), [(500, True), (501, False)])
def test_a_lease_that_was_over_may_be_refused(story, until, valid):
    refused(story, 1, 2)
    refused(story, 3, until=until)
    assert told(story).valid is valid


@pytest.mark.parametrize(("kind", "valid"), [("unreachable", True), ("not-held", False)])
def test_only_the_answer_that_it_is_not_held_counts(story, kind, valid):
    refused(story, 1, 2)
    refused(story, 3, kind=kind)
    assert told(story).valid is valid


@pytest.mark.parametrize(
    ("begin", "end", "valid"),
    [(2900, 2999, False), (2900, 3000, True), (3500, 3600, True), (3501, 3600, False)],
)
def test_a_fault_may_explain_a_refusal(story, begin, end, valid):
    story.fault("pause", begin, end, ["client-9"])
    refused(story, 1, 2, 3)
    assert told(story).valid is valid


def test_a_hold_that_was_lost_may_be_refused(story):
    refused(story, 1, 2)
    story.grant(1, "h3", 3000, 3900, asked=3000)
    story.op(3100, 1, "info", "lost", {"lock": "orders", "hold": "h3"}, ["lost", "-"])
    story.release(1, "h3", 3500, 3500, type="fail")
    assert told(story).valid is True


@pytest.mark.parametrize(("promises", "valid"), [({}, True), ({"reentrant": True}, False)])
def test_the_end_of_a_second_grant_may_have_ended_the_first_one(story, promises, valid):
    refused(story, 1, 2)
    story.grant(1, "h3", 3000, 3900, asked=3000)
    story.grant(1, "again", 3100, 3900, asked=3100)
    story.release(1, "again", 3200, 3200)
    story.release(1, "h3", 3500, 3500, type="fail")
    assert told(story, promises=promises).valid is valid


@pytest.mark.parametrize(("ends", "valid"), [([], False), ([3200], True), ([3501], False)])
def test_a_session_that_had_ended_explains_a_refusal(story, ends, valid):
    refused(story, 1, 2, 3)
    ended = {"client-1": [at * MS for at in ends]}
    test = {"lock": {"ends_with": "connection"}, "session_ends": ended}
    assert told(story, **test).valid is valid


def test_only_the_first_release_of_a_hold_counts(story):
    refused(story, 1, 2)
    story.grant(1, "h3", 3000, 3900, asked=3000)
    story.release(1, "h3", 3100, 3100, type="fail", kind="unreachable")
    story.release(1, "h3", 3500, 3500, type="fail")
    assert told(story).valid is True


@pytest.mark.parametrize(
    ("begin", "end", "type", "valid"),
    [
        (2900, 2999, "fail", False),
        (2900, 3000, "fail", True),
        (2900, 2999, "info", True),
        (3500, 3600, "fail", True),
        (3501, 3600, "fail", False),
    ],
)
def test_a_release_of_another_client_may_have_ended_it(story, begin, end, type, valid):
    refused(story, 1, 2, 3)
    story.call(
        2, "release", begin, end, {"lock": "orders", "hold": "strange"}, type=type,
        error=["not-held", "-"],
    )  # fmt: skip
    assert told(story).valid is valid


def test_a_release_of_another_client_may_be_earlier_by_its_clock(story):
    refused(story, 1, 2, 3)
    asked = {"lock": "orders", "hold": "strange"}
    story.call(2, "release", 3504, 3600, asked, type="fail", error=["not-held", "-"])
    clocks = {f"client-{n}": {"bound_ns": 2 * MS} for n in (1, 2)}
    assert told(story, clocks=clocks).valid is True
    assert told(story, clocks={name: {"bound_ns": 1 * MS} for name in clocks}).valid is False


@pytest.mark.parametrize(("end", "valid"), [(2997, False), (2998, True)])
def test_the_clock_of_a_third_client_does_not_matter(story, end, valid):
    refused(story, 1, 2, 3)
    asked = {"lock": "orders", "hold": "strange"}
    story.call(2, "release", 2900, end, asked, type="fail", error=["not-held", "-"])
    answered(story, 5, process=3)
    clocks = {f"client-{n}": {"bound_ns": bound * MS} for n, bound in ((1, 1), (2, 1), (3, 50))}
    assert told(story, clocks=clocks).valid is valid


def test_a_lease_that_its_client_does_not_see_runs_for_its_ttl(story):
    for number, ttl in enumerate((600, 600, 600), start=1):
        at = 1000 * number
        asked = {"lock": "orders", "ttl": ttl * MS}
        answer = {"token": None, "deadline": None, "hold": f"h{number}"}
        story.call(1, "acquire", at, at, asked, answer)
        story.release(1, f"h{number}", at + 500, at + 500, type="fail")
    assert told(story).valid is False


def test_a_lock_with_shared_holds_has_no_model(story):
    refused(story, 1, 2, 3)
    story.grant(2, "r", 9000, 9900, shared=True)
    assert told(story).valid == "unknown"


def test_a_lock_without_any_release_may_refuse_extends(story):
    for number in (1, 2, 3):
        at, hold = 1000 * number, f"h{number}"
        story.grant(1, hold, at, at + 900, asked=at)
        asked = {"lock": "orders", "hold": hold, "ttl": 900 * MS}
        story.call(1, "extend", at + 300, at + 300, asked, type="fail", error=["not-held", "-"])
    story.grant(1, "h4", 4000, 4900)  # no request follows
    assert told(story).valid is False


def test_a_refusal_at_the_moment_of_the_grant_counts(story):
    for number in (1, 2, 3):
        at = 1000 * number
        story.grant(1, f"h{number}", at, at + 900, asked=at)
        story.release(1, f"h{number}", at, at, type="fail")
    assert told(story).valid is False


def test_requests_that_failed_otherwise_count_on_neither_side(story):
    refused(story, 1, 2, 3)
    extends(story, 4, 5, 6, type="ok")  # three releases are answered ok
    story.grant(1, "h7", 7000, 7900, asked=7000)
    story.release(1, "h7", 7100, 7100, type="fail", kind="unreachable")
    assert told(story).valid is True


def test_a_release_after_an_extend_that_was_answered_ok_counts(story):
    extends(story, 1, 2, 3, type="ok", released="fail")
    found = told(story)
    assert found.valid is False
    assert found.summary.startswith("3 releases of the lock were refused")


def answered(story, *numbers, took=20, process=2):
    """Add turns of a second each, whose releases are answered ok."""
    for number in numbers:
        at = 1000 * number
        story.grant(process, f"ok{number}", at, at + 900, asked=at)
        story.release(process, f"ok{number}", at + 500, at + 500 + took)


def refused_after(story, *numbers, took=10):
    for number in numbers:
        at = 1000 * number
        story.grant(1, f"h{number}", at, at + 900, asked=at)
        story.release(1, f"h{number}", at + 500, at + 500 + took, type="fail")


def test_three_refused_faster_than_most_are_answered_were_not_sent_again(story):
    answered(story, *range(1, 10))
    refused_after(story, 11, 12, 13)
    found = told(story)
    assert found.valid is False
    assert "and 9 answered ok, faster than most of these: the service had given" in found.summary
    assert found.evidence[0]["time_ns"] == 11_500 * MS


def test_three_answered_ok_show_how_long_one_takes(story):
    answered(story, 1, 2, 3)
    refused_after(story, 11, 12, 13)
    assert "and 3 answered ok, faster than most of these" in told(story).summary


@pytest.mark.parametrize("took", [20, 30])
def test_those_that_took_as_long_may_have_been_sent_again(story, took):
    answered(story, *range(1, 10))
    refused_after(story, 11, 12, 13, took=took)
    assert told(story).valid is True


def test_two_that_are_faster_are_too_few(story):
    answered(story, *range(1, 10))
    refused_after(story, 11, 12)
    refused_after(story, 13, took=20)
    assert told(story).valid is True


@pytest.mark.parametrize(("slow", "valid"), [(2, True), (3, False)])
def test_they_are_faster_than_at_least_half(story, slow, valid):
    answered(story, *range(1, 1 + slow))
    answered(story, 4, 5, 6, took=5)
    refused_after(story, 11, 12, 13)
    assert told(story).valid is valid


def test_requests_that_a_fault_met_do_not_show_how_long_one_takes(story):
    answered(story, 1, 2, 3, 4, 5, took=400)
    story.fault("pause", 1000, 6000, ["redis-1"])
    answered(story, 7, 8, 9, took=5)
    refused_after(story, 11, 12, 13)
    assert told(story).valid is True


@pytest.mark.parametrize("took", [0, 10])
def test_a_few_requests_do_not_show_how_long_one_takes(story, took):
    answered(story, 1, 2)
    answered(story, 3, 4, 5, took=0)
    refused_after(story, 11, 12, 13, took=took)
    story.fault("pause", 3000, 6000, ["redis-1"])
    assert told(story).valid is True
