"""A history that ends behind a fault, with clients that ask in vain, tells nothing. Times are in
ms."""

from __future__ import annotations

import pytest

from tests.checker.liveness_stories import BOUND, TTL, asks_in_vain, verdict
from tests.histories import MS

ONE = {"servers": ["redis-1"]}


def served(story):
    story.grant(1, "h1", at=0, until=TTL)
    story.release(1, "h1", at=100)


def stuck(story, *, since=1000, until=5000, family="packet", nodes=("redis-1",)):
    served(story)
    arguments = {"kind": "delay"} if family == "packet" else {}
    story.fault(family, since, None, list(nodes), arguments=arguments)
    asks_in_vain(story, since, until)


def test_clients_that_ask_in_vain_behind_a_fault_that_never_ends_show_nothing(story):
    stuck(story)
    found = verdict(story, **ONE)
    assert found.valid == "unknown"
    assert found.summary == (
        "A fault was on until the end, and clients asked in vain from 1.000 s on: the history does "
        "not tell whether because of it."
    )
    assert found.details["untested"] == []


@pytest.mark.parametrize(("until", "valid"), [(2910, True), (3010, "unknown")])
def test_they_ask_for_longer_than_the_bound(story, until, valid):
    """The last request ends 80 ms after `until`."""
    assert BOUND == 2000
    stuck(story, until=until)
    assert verdict(story, **ONE).valid == valid


def test_clients_that_have_asked_from_the_start_ask_in_vain_since_the_fault(story):
    served(story)
    asks_in_vain(story, 100, 1000)
    story.fault("packet", 1000, None, ["redis-1"], arguments={"kind": "delay"})
    asks_in_vain(story, 1000, 5000)
    assert "in vain from 1.000 s on" in verdict(story, **ONE).summary


@pytest.mark.parametrize(("again", "valid"), [(2700, "unknown"), (2700.001, True)])
def test_a_pause_of_a_tenth_of_the_bound_does_not_count(story, again, valid):
    stuck(story, until=1000)
    story.denied(7, 1000, 2500)
    story.denied(7, again, 4000)
    assert verdict(story, **ONE).valid == valid


def test_a_fault_of_the_clients_that_ask_shows_no_more(story):
    stuck(story, family="cpu", nodes=["client-7"])
    assert verdict(story, **ONE).valid == "unknown"


def test_a_bystanders_fault_hides_nothing(story):
    stuck(story, family="cpu", nodes=["client-9"])
    assert verdict(story, **ONE).valid is False


def test_a_fault_that_was_healed_is_no_such_fault(story):
    served(story)
    story.fault("pause", 1000, 5000, ["redis-1"])
    asks_in_vain(story, 1000, 5200)
    assert verdict(story, **ONE).valid is not False
    assert "until the end" not in verdict(story, **ONE).summary


@pytest.mark.parametrize(("took", "kind"), [(199, "timeout"), (500, "cancelled")])
def test_so_do_clients_that_give_up_each_time_before_they_hear_of_a_grant(story, took, kind):
    """Each request may have been granted. So a lock that answers nothing is not to blame."""
    served(story)
    for at in range(1000, 9000, took):
        asked = {"lock": "orders", "ttl": TTL * MS}
        story.call(7, "acquire", at, at + took, asked, type="info", error=[kind, "-"])
    found = verdict(story, **ONE)
    assert found.valid == "unknown"
    assert found.summary == (
        "Clients asked in vain from 1.000 s on, until the history ended: the history does not tell "
        "whether because of requests that may have been granted."
    )
    story.grant(1, "h2", at=9100, until=9900)
    assert verdict(story, **ONE).valid is True


def test_they_ask_in_vain_since_it_began_whatever_fault_ended_meanwhile(story):
    """From 4.4 s on they do not ask for longer than the bound."""
    stuck(story)
    story.fault("pause", 4400, 4500, ["client-9"])
    assert "in vain from 1.000 s on" in verdict(story, **ONE).summary


def test_the_kill_of_a_client_is_over_at_once(story):
    served(story)
    story.fault("kill", 1000, None, ["client-9"], processes=[9])
    story.grant(2, "h2", at=1000, until=2000)
    story.release(2, "h2", at=1100)
    assert verdict(story, **ONE).valid is True


@pytest.mark.parametrize(("until", "valid"), [(2989, "unknown"), (2990, True), (None, True)])
def test_a_hold_that_may_last_explains_the_wait(story, until, valid):
    stuck(story)
    story.grant(2, "h2", at=900, until=until)
    assert verdict(story, **ONE).valid == valid


@pytest.mark.parametrize(("at", "valid"), [(4190, "unknown"), (4191, True), (5000, True)])
def test_clients_that_have_stopped_asking_wait_for_nothing(story, at, valid):
    """The last request ends at 3.990 s. A pause is a tenth of the bound at most."""
    stuck(story, until=4000)
    story.read(3, at, None, 0)
    assert verdict(story, **ONE).valid == valid


def test_the_last_fault_that_began_counts(story):
    stuck(story)
    story.fault("pause", 3500, None, ["redis-1"])
    assert verdict(story, **ONE).valid is True


def gone(story, *, until, ttl=TTL, ask_until=4000):
    """A holder is killed at 0.5 s. Its lease ends at `until`."""
    served(story)
    story.grant(2, "h2", at=200, until=until, ttl=ttl)
    story.call(2, "read", 300, None, {"resource": "account"})
    story.killed(2, 500, "read")
    asks_in_vain(story, 600, ask_until)


def test_a_lease_that_is_longer_than_it_was_asked_for_keeps_others_from_the_lock(story):
    gone(story, until=90_000)
    found = verdict(story, **ONE)
    assert found.valid == "unknown"
    assert found.summary == (
        "A lease that is longer than it was asked for outlasts its holder, and others asked in "
        "vain from 1.500 s on: the history ends before that lease does."
    )


def test_a_lease_is_to_last_as_long_as_its_own_request_asked_for(story):
    gone(story, until=90_000, ttl=TTL // 2)
    assert "in vain from 1.000 s on" in verdict(story, **ONE).summary


@pytest.mark.parametrize(("until", "valid"), [(3400, True), (3510, "unknown")])
def test_they_ask_for_longer_than_the_bound_after_it(story, until, valid):
    gone(story, until=90_000, ask_until=until)
    assert verdict(story, **ONE).valid == valid


def test_a_lease_as_long_as_it_was_asked_for_explains_the_wait(story):
    gone(story, until=90_000, ttl=90_000)
    assert verdict(story, **ONE).valid is True


def test_a_holder_that_lives_may_rely_on_its_longer_lease(story):
    served(story)
    story.grant(2, "h2", at=200, until=90_000)
    asks_in_vain(story, 600, 4000)
    assert verdict(story, **ONE).valid is True


def test_a_fault_that_ended_later_gives_them_less_time(story):
    gone(story, until=90_000, ask_until=5000)
    story.fault("pause", 2900, 3100, ["redis-1"])
    assert verdict(story, **ONE).valid is True
