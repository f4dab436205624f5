"""A client that gets an error each time it asks for a lock that no client has. Times are in ms;
a lease lasts for 1 s, the bound is 2 s, and a client waits for 0.2 s at most in calm."""

from __future__ import annotations

import pytest

from fencepost.checker.history.history import History, Op
from fencepost.checker.liveness import liveness
from tests.checker.liveness_stories import BOUND, MINORITY, SERVERS, TTL, asks, verdict

RAISED = ("raised", "ConnectionError: no answer of redis-5")


def failed(story, *times, process=3, took=10, error=RAISED):
    for at in times:
        asks(story, at, at + took, process=process, type="info", error=error)


def free_with_an_error(story, **how):
    """From 0.1 s on the lock is free. A request that failed may hold it from 1.00 to 2.01 s, so
    that the limit is 4.01 s."""
    story.grant(1, "h1", at=0, until=TTL)
    story.release(1, "h1", at=100)
    failed(story, 1000, **how)


def told(story, **test):
    found = verdict(story, **test)
    return [row for row in found.evidence if "got an error" in row["what"]]


def test_a_lock_that_answers_with_errors_is_blamed(story):
    free_with_an_error(story)
    failed(story, 2200, 4020, 4050)
    (row,) = told(story)
    assert row["what"] == (
        "client-3 asked for the lock 2 times from 4.020 s to 4.060 s while no client had it, and "
        "got an error each time (raised): the lock should have been granted by 4.010 s."
    )
    assert (row["time_ns"], row["valid"], row["ops"]) == (4_060_000_000, False, [8, 11])
    assert (row["lock"], row["waited_s"]) == ("orders", None)


@pytest.mark.parametrize(
    ("times", "blamed"),
    [((4011, 5000), True), ((4010, 5000), False), ((4011,), False), ((2200, 3400, 4011), False)],
)
def test_one_error_after_the_limit_may_be_a_hiccup(story, times, blamed):
    free_with_an_error(story)
    failed(story, *times)
    assert bool(told(story)) is blamed


def test_errors_of_two_clients_may_be_one_of_each_connection(story):
    free_with_an_error(story)
    failed(story, 4020)
    failed(story, 4050, process=4)
    assert not told(story)
    failed(story, 4080, process=4)
    (row,) = told(story)
    assert row["what"].startswith("client-4 asked for the lock 2 times from 4.050 s")


@pytest.mark.parametrize("at", [2500, 4035])
def test_a_grant_shows_that_the_lock_is_available(story, at):
    free_with_an_error(story)
    failed(story, 4020, 4050)
    story.grant(1, "h2", at=at, until=at + TTL)
    story.release(1, "h2", at=at)
    assert not told(story)


def test_only_the_first_error_since_then_excuses_the_lock(story):
    """The grant at 2.5 s makes that at 2.6 s the first, with its lease until 3.61 s."""
    free_with_an_error(story)
    story.grant(1, "h2", at=2500, until=2500 + TTL)
    story.release(1, "h2", at=2500)
    failed(story, 2600, 4000, 5600, 5620)
    assert not told(story)
    failed(story, 5640)
    assert "should have been granted by 5.610 s" in told(story)[0]["what"]


def test_a_lease_that_outlasts_a_hold_excuses_it_too(story):
    """The lease of the request at 1.0 s may run until 9.01 s."""
    story.grant(1, "h1", at=0, until=TTL)
    story.release(1, "h1", at=100)
    asked = {"lock": "orders", "ttl": 8_000_000_000}
    story.call(3, "acquire", 1000, 1010, asked, type="info", error=list(RAISED))
    story.grant(1, "h2", at=1500, until=1500 + TTL)
    story.release(1, "h2", at=1500)
    failed(story, 2000, 6000, 7000, 11_000)
    assert not told(story)
    failed(story, 11_020, 11_040)
    assert "should have been granted by 11.010 s" in told(story)[0]["what"]


def test_a_lock_that_was_never_granted_is_excused_by_the_first_error(story):
    """Its lease may run from 1.00 to 2.01 s."""
    failed(story, 1000, 4000, 4020)
    assert not told(story)
    failed(story, 4040)
    assert "should have been granted by 4.010 s" in told(story)[0]["what"]
    story.grant(1, "h1", at=9000, until=9900)
    assert "should have been granted by 4.010 s" in told(story)[0]["what"]


def test_errors_before_a_grant_show_nothing_after_it(story):
    free_with_an_error(story)
    failed(story, 2200, 2400)
    story.grant(1, "h2", at=2500, until=2500 + TTL)
    story.release(1, "h2", at=2600)
    asks(story, 6000, 6010)
    assert not told(story)


def test_each_error_after_the_limit_is_counted(story):
    free_with_an_error(story)
    failed(story, 4020, 4050, 4080)
    (row,) = told(story)
    assert "the lock 3 times from 4.020 s to 4.090 s" in row["what"]
    assert (row["time_ns"], row["ops"]) == (4_090_000_000, [6, 11])


def test_two_processes_of_one_node_are_one_client(story):
    free_with_an_error(story)
    failed(story, 4020)
    failed(story, 4050, process=4)
    ops = [
        Op(o.index, o.time, o.process, o.type, o.f, o.value, o.error, "client-3")
        for o in story.history()
    ]
    found = liveness(History(ops), {"liveness_bound_s": BOUND / 1000})
    assert any("got an error" in row["what"] for row in found.evidence)


def test_an_error_that_a_fault_held_back_excuses_the_lock_until_its_lease_is_over(story):
    """It is sent 0.5 s before the fault ends, and so arrives by 2.2 s. Its lease ends by 3.2 s."""
    story.fault("packet", 900, 1500, ["redis-1"], placed=1100, arguments={"kind": "loss"})
    failed(story, 1000)
    failed(story, 4100, 4200)
    assert not told(story, servers=SERVERS[:1])
    failed(story, 5300, 5400)
    (row,) = told(story, servers=SERVERS[:1])
    assert "granted by 5.200 s" in row["what"]


def test_others_may_be_refused_the_lock_meanwhile(story):
    free_with_an_error(story)
    failed(story, 4020, 4050)
    asks(story, 1015, 1025)
    asks(story, 4035, 4045)
    assert told(story)


@pytest.mark.parametrize(
    ("at", "done", "blamed"),
    [(4090, 4100, False), (4090, 4099, True), (4110, 4120, False), (4111, 4120, True)],
)
def test_clients_that_ask_each_server_by_itself_may_refuse_one_another(story, at, done, blamed):
    free_with_an_error(story)
    failed(story, 4020, 4100)
    asks(story, at, done)
    assert bool(told(story, servers=SERVERS)) is blamed
    assert told(story, servers=SERVERS, lock={"ends_with": "close"})
    assert told(story, servers=SERVERS[:1])


@pytest.mark.parametrize(("bound_ms", "blamed"), [(9, True), (10, False)])
def test_their_order_must_be_certain(story, bound_ms, blamed):
    """The stamps of two nodes may be apart by twice the bound of their clocks."""
    free_with_an_error(story)
    failed(story, 4200, 4300)
    asks(story, 4320 - 40, 4280)
    clocks = {"client-3": {"bound_ns": bound_ms * 1_000_000}}
    assert bool(told(story, servers=SERVERS, clocks=clocks)) is blamed


@pytest.mark.parametrize(("dies", "blamed"), [(4050, True), (None, False)])
def test_a_client_that_died_asks_no_more(story, dies, blamed):
    free_with_an_error(story)
    story.call(7, "acquire", 4020, None, {"lock": "orders", "ttl": 1_000_000_000})
    if dies:
        story.killed(7, dies, "acquire")
    failed(story, 7200, 7300)
    assert bool(told(story, servers=SERVERS)) is blamed


def test_an_error_without_a_kind_may_be_a_timeout(story):
    free_with_an_error(story, error=())
    failed(story, 4020, 4050, error=())
    assert not told(story)


@pytest.mark.parametrize(
    ("took", "error", "blamed"),
    [
        (10, ("no-quorum", "-"), True),
        (10, ("timeout", "-"), False),
        (199, ("timeout", "-"), False),
        (200, ("timeout", "-"), True),
        (500, ("cancelled", "-"), False),
        (500, ("killed", "-"), False),
    ],
)
def test_a_request_that_its_client_gave_up_did_not_fail(story, took, error, blamed):
    free_with_an_error(story)
    failed(story, 5200, 7200, took=took, error=error)
    assert bool(told(story)) is blamed


def test_a_client_that_reports_the_end_of_its_wait_did_not_wait_for_the_answer(story):
    free_with_an_error(story)
    for at in (4200, 5200):
        failed(story, at)
        over = {"lock": "orders", "hold": None}
        story.op(at + 5, 3, "info", "lost", over, ["expired", "-"])
    assert not told(story)


@pytest.mark.parametrize(
    ("targets", "blamed"), [(["client-3"], False), (["client-1"], True), (SERVERS[:1], False)]
)
def test_nothing_may_be_in_its_way(story, targets, blamed):
    free_with_an_error(story)
    failed(story, 4020, 4200)
    story.fault("pause", 4200, 4205, targets)
    assert bool(told(story, servers=SERVERS)) is blamed


@pytest.mark.parametrize(("until", "blamed"), [(4000, False), (3500, True)])
def test_a_timeout_soon_after_a_fault_of_its_client_shows_nothing(story, until, blamed):
    """For as long again as the fault was on."""
    free_with_an_error(story)
    story.fault("pause", 2500, until, ["client-3"])
    failed(story, 4800, 5100, took=200, error=("timeout", "-"))
    assert bool(told(story)) is blamed


@pytest.mark.parametrize(("error", "blamed"), [(RAISED, True), (("timeout", "-"), False)])
def test_a_fault_that_the_lock_promises_to_survive_is_no_excuse(story, error, blamed):
    """The leases that it met end at 1.3 s. A time-out counts in calm alone."""
    free_with_an_error(story, took=250, error=error)
    story.fault("kill", 300, 9000, SERVERS[:1])
    failed(story, 1400, 5400, 6700, took=250, error=error)
    assert bool(told(story, **MINORITY)) is blamed
