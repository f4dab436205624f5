"""A client that is refused a free lock, while others are granted it. Times are in ms."""

from __future__ import annotations

import pytest

from fencepost.checker.history.history import History, Op
from fencepost.checker.liveness import liveness
from tests.checker.liveness_stories import SERVERS, verdict
from tests.histories import MS

POLL = 80


def turns(story, many, *, client=1, every=1000, first=0, holds=50, asked=10):
    """A client is granted the lock at once, again and again."""
    for number in range(first, first + many):
        at = 1000 + every * number
        story.grant(client, f"{client}-{number}", at, at + 900, asked=at - asked)
        story.release(client, f"{client}-{number}", at + holds, at + holds)


def polls(story, begin, end, *, client=2, took=POLL, pause=20, kind="not-granted"):
    while begin + took <= end:
        asked = {"lock": "orders", "ttl": 1000 * MS}
        story.call(client, "acquire", begin, begin + took, asked, type="fail", error=[kind, "no"])
        begin += took + pause


def shut(story, **test):
    found = verdict(story, **test)
    return [row for row in found.evidence if "was refused" in row["what"]]


def asks_in_each(story, many, **how):
    """It asks from 1.06 s on, for 0.88 s in each free time. Each counts 0.68 s."""
    for number in range(many):
        polls(story, 1060 + 1000 * number, 1950 + 1000 * number, **how)


@pytest.mark.parametrize(("many", "blamed"), [(3, False), (4, True)])
def test_a_client_that_asks_for_longer_than_the_bound_in_all_is_shut_out(story, many, blamed):
    turns(story, 6)
    asks_in_each(story, many)
    assert bool(shut(story, liveness_bound_s=2.1)) is blamed


@pytest.mark.parametrize(("took", "blamed"), [(700, False), (701, True)])
def test_one_that_asks_for_exactly_the_bound_is_not_shut_out(story, took, blamed):
    """Of four requests, each counts as 0.2 s less than it took."""
    turns(story, 6)
    for number in range(4):
        polls(story, 1060 + 1000 * number, 1800 + 1000 * number, took=took)
    assert bool(shut(story, liveness_bound_s=2)) is blamed


@pytest.mark.parametrize(("pause", "blamed"), [(200, True), (201, False)])
def test_a_pause_of_a_tenth_of_the_bound_belongs_to_the_time_for_which_it_asks(
    story, pause, blamed
):
    """Four times it asks from 1.06 s to 1.80 s. Of that, 0.54 s count, or 0.14 s."""
    turns(story, 6)
    for number in range(4):
        at = 1060 + 1000 * number
        polls(story, at, at + 270, took=270)
        polls(story, at + 270 + pause, at + 540 + pause, took=270)
    assert bool(shut(story, liveness_bound_s=2)) is blamed


def test_one_whose_requests_end_with_errors_meanwhile_is_the_same_client(story):
    """After each error, its next process has another number."""
    turns(story, 6)
    asks_in_each(story, 2)
    asked = {"lock": "orders", "ttl": 1 * MS}
    story.call(2, "acquire", 3010, 3030, asked, type="info", error=["raised", "-"])
    for number in (2, 3):
        polls(story, 1060 + 1000 * number, 1950 + 1000 * number, client=12)
    ops = [
        Op(o.index, o.time, o.process, o.type, o.f, o.value, o.error, f"client-{o.process % 10}")
        for o in story.history()
    ]
    rows = liveness(History(ops), {"liveness_bound_s": 2.1}).evidence
    assert any("client-2 was refused 31 times" in row["what"] for row in rows)


def test_the_time_before_the_first_grant_counts(story):
    turns(story, 1, first=2)
    polls(story, 0, 2980)
    (row,) = shut(story, liveness_bound_s=2)
    assert "was refused 23 times from 0.000 s" in row["what"]


def test_the_evidence_names_the_client(story):
    turns(story, 5)
    asks_in_each(story, 4)
    (row,) = shut(story, liveness_bound_s=2.1)
    assert row["what"] == (
        "client-2 was refused 31 times from 1.060 s to 4.440 s while no client had "
        "the lock, though other clients were granted it at once."
    )
    assert (row["time_ns"], row["valid"], row["lock"]) == (4440 * MS, False, "orders")
    assert (row["ops"][0], row["waited_s"]) == (4, None)


@pytest.mark.parametrize(("own", "blamed"), [(2, False), (3, True)])
def test_one_that_is_granted_the_lock_begins_again(story, own, blamed):
    """The third grant is its own, or another client's."""
    turns(story, 2)
    turns(story, 1, client=own, first=2)
    turns(story, 3, first=3)
    asks_in_each(story, 4)
    assert bool(shut(story, liveness_bound_s=1.9)) is blamed


def test_one_that_is_granted_the_lock_in_another_way_is_not_at_once(story):
    """The other one was refused as well before it was granted the lock: it is not available."""
    turns(story, 6)
    asks_in_each(story, 4)
    for number in range(4):
        polls(story, 1500 + 1000 * number, 1590 + 1000 * number, client=1)
    assert not shut(story, liveness_bound_s=2.1)


def test_a_grant_that_was_asked_for_while_the_lock_was_held_shows_nothing(story):
    """Two clients take turns; each waits from within the other's hold on."""
    for number in range(6):
        at, client = 1000 + 1000 * number, 1 + 2 * (number % 2)
        story.grant(client, f"{client}-{number}", at, at + 900, asked=max(at - 960, 10))
        story.release(client, f"{client}-{number}", at + 50, at + 50)
    asks_in_each(story, 4)
    assert not shut(story, liveness_bound_s=2.1)


def test_a_refusal_while_another_request_is_answered_does_not_count(story):
    turns(story, 6, asked=930)  # asked for 20 ms after the release
    asks_in_each(story, 4)
    assert not shut(story, liveness_bound_s=2.1)


def test_a_request_in_the_instant_of_its_grant_may_have_been_before_it(story):
    """The client that is granted the lock begins a second one then, and is refused."""
    turns(story, 6)
    asks_in_each(story, 4)
    assert shut(story, liveness_bound_s=2.1)
    for at in (2000, 3000, 4000, 5000):
        polls(story, at, at + 10, client=1, took=10)
    assert not shut(story, liveness_bound_s=2.1)


def during_a_hold(story):
    polls(story, 2010, 2030, took=20)


def beside_another(story):
    for client in (2, 3):
        polls(story, 2060, 2500, client=client, took=440)


def behind_a_fault(story):
    polls(story, 2060, 2140)
    story.fault("pause", 2000, 2055, ["client-2"])


def still_open(story):
    story.call(9, "acquire", 2060, None, {"lock": "orders", "ttl": 1000 * MS})


@pytest.mark.parametrize(
    ("before", "ends_with"),
    [
        (during_a_hold, "close"),
        (beside_another, "lease"),
        (behind_a_fault, "close"),
        (still_open, "close"),
    ],
)
def test_a_request_that_does_not_count_ends_nothing(story, before, ends_with):
    """Four times it asks in calm, as above, before and after it."""
    turns(story, 8)
    asks_in_each(story, 1)
    before(story)
    for number in (2, 3, 4):
        polls(story, 1060 + 1000 * number, 1950 + 1000 * number)
    test = {"servers": SERVERS, "lock": {"ends_with": ends_with}}
    (row,) = shut(story, liveness_bound_s=2.1, **test)
    assert "from 1.060 s to 5.440 s" in row["what"]


@pytest.mark.parametrize(("after", "blamed"), [(1760.5, False), (1760.6, True)])
def test_clocks_must_show_that_it_asks_each_server_alone(story, after, blamed):
    """The request of another client follows that which ended at 1.76 s, and so on."""
    turns(story, 6)
    for number in range(4):
        polls(story, 1060 + 1000 * number, 1760 + 1000 * number, took=700)
        polls(story, after + 1000 * number, after + 10 + 1000 * number, client=3, took=10)
    clocks = {f"client-{n}": {"bound_ns": 250_000} for n in (1, 2, 3)}
    test = {"servers": SERVERS, "clocks": clocks, "liveness_bound_s": 1.9}
    assert bool(shut(story, **test)) is blamed


def test_a_client_that_waits_by_itself_is_not_shut_out(story):
    turns(story, 30)
    polls(story, 1060, 29_000, took=5000)
    assert not shut(story, liveness_bound_s=2.1)


def test_one_that_rarely_asks_is_not_shut_out(story):
    turns(story, 60)
    for number in range(50):
        polls(story, 1060 + 1000 * number, 1150 + 1000 * number)
    assert not shut(story, liveness_bound_s=2.1)


@pytest.mark.parametrize(
    ("family", "node", "blamed"),
    [("pause", "client-2", False), ("pause", "client-9", True), ("packet", "redis-1", False)],
)
def test_a_fault_may_keep_it_from_the_lock_for_as_long_again(story, family, node, blamed):
    """Requests until 2.7 s do not count."""
    turns(story, 6)
    asks_in_each(story, 4)
    story.fault(family, 2100, 2400, [node], arguments={"kind": "loss"})
    assert bool(shut(story, liveness_bound_s=2.1, servers=SERVERS[:1])) is blamed


@pytest.mark.parametrize(("ends_with", "blamed"), [("lease", False), ("close", True)])
def test_clients_that_ask_each_server_may_refuse_one_another(story, ends_with, blamed):
    turns(story, 6)
    asks_in_each(story, 4)
    asks_in_each(story, 4, client=3)
    test = {"servers": SERVERS, "lock": {"ends_with": ends_with}, "liveness_bound_s": 2.1}
    assert bool(shut(story, **test)) is blamed


def test_a_client_that_asks_each_server_alone_may_be_shut_out(story):
    turns(story, 6)
    asks_in_each(story, 4)
    assert shut(story, servers=SERVERS, liveness_bound_s=2.1)


@pytest.mark.parametrize(("begin", "end", "blamed"), [(1051, 1988, True), (1050, 1988, False)])
def test_its_clock_must_show_that_the_lock_was_free(story, begin, end, blamed):
    """A request 1 ms after the release, by clocks known to 0.5 ms together, counts; and so on."""
    turns(story, 6)
    for number in range(4):
        polls(story, begin + 1000 * number, begin + 600 + 1000 * number, took=600)
    clocks = {f"client-{n}": {"bound_ns": 250_000} for n in (1, 2)}
    assert bool(shut(story, liveness_bound_s=1.6, clocks=clocks)) is blamed


@pytest.mark.parametrize(("end", "blamed"), [(1989, True), (1989.5, False), (1990, False)])
def test_its_clock_must_show_that_no_other_had_asked(story, end, blamed):
    turns(story, 6)
    for number in range(4):
        polls(story, end - 600 + 1000 * number, end + 1000 * number, took=600)
    clocks = {f"client-{n}": {"bound_ns": 250_000} for n in (1, 2)}
    assert bool(shut(story, liveness_bound_s=1.6, clocks=clocks)) is blamed


def test_a_client_that_was_told_that_its_wait_has_ended_waits_no_more(story):
    turns(story, 6)
    asks_in_each(story, 4)
    for number in range(4):
        for at in range(1060 + 1000 * number, 1950 + 1000 * number, 100):
            lost = {"lock": "orders", "hold": None}
            story.op(at + 1, 2, "info", "lost", lost, ["expired", "-"])
    assert not shut(story, liveness_bound_s=2.1)
