"""Liveness blames the lock only after a client asked without pause, or twice alone, in vain."""

from __future__ import annotations

import pytest

from tests.checker.liveness_stories import (
    LIMIT,
    SERVERS,
    asks,
    cut,
    healed_at_5000,
    verdict,
)
from tests.histories import MS, Story


def test_one_refusal_while_the_old_lease_may_still_run_does_not_prove_a_dead_lock(story):
    cut(story, 0, 5000, *SERVERS)
    story.denied(1, 5000, 5010)
    story.read(1, 9000, None, 0)
    assert verdict(story).valid == "unknown"


def test_a_grant_after_a_long_time_without_requests_is_not_late(story):
    cut(story, 0, 5000, *SERVERS)
    story.denied(1, 5000, 5010)
    story.grant(1, "h", asked=9000, at=9010, until=10000)
    assert verdict(story).valid == "unknown"


def test_an_acquire_that_never_returned_was_asked_all_the_time(story):
    cut(story, 0, 5000, *SERVERS)
    story.denied(1, 5000, None)
    story.read(2, 9000, None, 0)
    assert verdict(story).valid is False


def test_a_request_just_before_the_limit_that_is_granted_just_after_proves_nothing(story):
    healed_at_5000(story)
    story.grant(1, "h", asked=7999, at=8001, until=9000)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.details["untested"] == ["after the last fault was healed"]


def test_one_acquire_in_vain_for_longer_than_the_bound_proves_a_dead_lock(story):
    healed_at_5000(story)
    asks(story, 6000, 8001)
    assert verdict(story).valid is False


def test_one_acquire_in_vain_for_the_bound_does_not(story):
    healed_at_5000(story)
    asks(story, 6000, 8000)
    story.read(1, 20_000, None, 0)
    assert verdict(story).valid == "unknown"


def test_requests_before_the_lock_was_due_do_not_count(story):
    healed_at_5000(story)
    asks(story, 3000, 7900)
    story.read(1, 20_000, None, 0)
    assert verdict(story).valid == "unknown"


def test_asking_for_longer_than_the_bound_after_the_limit_counts_as_well(story):
    healed_at_5000(story)
    asks(story, 10_000, 12_001)
    story.grant(1, "h", asked=14_000, at=14_010, until=15_000)
    found = verdict(story)
    assert found.valid is False
    assert found.evidence[0]["waited_s"] == 9.01


@pytest.mark.parametrize(("pause", "valid"), [(200, False), (201, "unknown")])
def test_a_pause_of_a_tenth_of_the_bound_keeps_requests_continuous_and_a_longer_one_does_not(
    story, pause, valid
):
    healed_at_5000(story)
    asks(story, 6000, 7000)
    asks(story, 7000 + pause, 8300)
    story.read(1, 20_000, None, 0)
    assert verdict(story).valid == valid


@pytest.mark.parametrize(
    ("end", "told"), [(7200, "history ends too early"), (7201, "No client asked")]
)
def test_a_client_that_paused_for_a_tenth_of_the_bound_still_asks_at_the_end(story, end, told):
    healed_at_5000(story)
    asks(story, 6000, 7000)
    story.read(1, end, None, 0)
    found = verdict(story)
    assert found.valid == "unknown"
    assert told in found.summary


def test_several_clients_ask_on_together(story):
    healed_at_5000(story)
    asks(story, 6000, 7100, process=1)
    asks(story, 6500, 6600, process=2)
    asks(story, 7000, 8100, process=3)
    assert verdict(story).valid is False


def test_clients_that_give_up_at_once_count_with_their_waiting_time(story):
    healed_at_5000(story)
    for at in range(6000, 8000, 500):
        asks(story, at, at + 5)
    story.read(2, 20_000, None, 0)
    assert verdict(story).valid == "unknown"


def test_a_client_that_is_dead_asks_for_nothing(story):
    healed_at_5000(story)
    asks(story, 6000, None, process=1)
    story.fault("kill", 6100, None, ["client-1"], processes=[1])
    story.read(2, 20_000, None, 0)
    assert verdict(story).valid == "unknown"


def test_an_acquire_of_a_client_that_crashed_was_asked_until_its_last_sign_of_life(story):
    healed_at_5000(story)
    asks(story, 7000, 20_000, type="info", error=("crashed", "-"))
    story.read(2, 30_000, None, 0)
    assert verdict(story).valid == "unknown"


@pytest.mark.parametrize(("again", "valid"), [(8001, False), (8000, "unknown")])
def test_a_client_that_died_in_an_acquire_had_asked_until_then(story, again, valid):
    """A later wait is blocked: its client may have been granted the lock."""
    healed_at_5000(story)
    asks(story, 6000, 7900)
    asks(story, again, 9000, type="info", error=("killed", "-"))
    story.read(2, 30_000, None, 0)
    assert verdict(story).valid == valid


def refused_after_the_limit(story, *times, **test):
    healed_at_5000(story)
    for number, (at, done) in enumerate(times):
        story.denied(7 + number, 5000 + LIMIT + at, 5000 + LIMIT + done)
    story.read(1, 30_000, None, 0)
    return verdict(story, **test)


def test_a_lock_that_refuses_a_lone_client_twice_after_the_limit_is_dead(story):
    assert refused_after_the_limit(story, (10, 12), (2000, 2002)).valid is False


def test_the_second_may_be_the_end_of_the_history(story):
    cut(story, 0, 5000, *SERVERS)
    story.denied(7, 8010, 8012)
    story.denied(8, 10_000, 10_002)
    assert verdict(story).valid is False


def test_a_request_at_the_limit_is_not_after_it(story):
    assert refused_after_the_limit(story, (0, 2), (2000, 2002)).valid == "unknown"


@pytest.mark.parametrize(("second", "valid"), [(12, "unknown"), (13, False)])
def test_clients_that_ask_one_after_the_other_in_one_instant_ask_at_one_time(story, second, valid):
    assert refused_after_the_limit(story, (10, 12), (second, second + 2)).valid == valid


@pytest.mark.parametrize(("second", "valid"), [(120, "unknown"), (121, False)])
def test_on_two_hosts_times_are_two_only_beyond_the_bounds_of_both_clocks(story, second, valid):
    times = ((110, 112), (second, second + 2))
    clocks = {f"client-{n}": {"bound_ns": 4 * MS} for n in (7, 8)}
    assert refused_after_the_limit(story, *times, clocks=clocks).valid == valid


def test_a_client_next_to_a_long_pending_request_is_not_alone(story):
    times = ((10, 1900), (20, 22), (500, 502), (1000, 1002))
    assert refused_after_the_limit(story, *times).valid == "unknown"


def test_one_refusal_after_the_limit_may_be_a_hiccup(story):
    assert refused_after_the_limit(story, (10, 12)).valid == "unknown"


@pytest.mark.parametrize(("ends_with", "valid"), [("lease", "unknown"), ("close", False)])
def test_two_clients_that_ask_at_once_may_refuse_one_another_only_on_single_servers(
    story, ends_with, valid
):
    times = ((2010, 2012), (2011, 2013), (4000, 4002), (4001, 4003))
    test = {"servers": SERVERS, "lock": {"ends_with": ends_with}}
    assert refused_after_the_limit(story, *times, **test).valid == valid


@pytest.mark.parametrize("second", [(4000, 4002), (2013, 2015)])
def test_a_client_that_asks_each_server_by_itself_may_be_refused_alone(story, second):
    found = refused_after_the_limit(story, (2010, 2012), second, servers=SERVERS)
    assert found.valid is False


def test_clients_that_fail_together_twice_show_a_dead_lock(story):
    times = ((10, 12), (11, 13), (2000, 2002), (2001, 2003))
    assert refused_after_the_limit(story, *times).valid is False
    assert refused_after_the_limit(Story(), *times[:2]).valid == "unknown"


def test_refusals_before_the_limit_do_not_count_for_those_after_it(story):
    assert refused_after_the_limit(story, (-100, -98), (2000, 2002)).valid == "unknown"


def test_a_request_that_may_have_been_granted_unheard_keeps_the_next_from_being_alone(story):
    cut(story, 0, 5000, *SERVERS)
    asked = {"lock": "orders", "ttl": 1000 * 1_000_000}
    for number, at in enumerate((15_000, 15_900, 16_800)):
        story.call(7 + number, "acquire", at, at + 1, asked, {}, "info", ["timeout", "-"])
    story.read(1, 30_000, None, 0)
    assert verdict(story).valid == "unknown"
