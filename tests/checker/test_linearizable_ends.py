"""A grant ends before its lease only by an event that ends the lock."""

from __future__ import annotations

import pytest

from tests.checker.linearizable_stories import CLOCKS, expired, verdict
from tests.histories import MS


@pytest.mark.parametrize(
    ("ends_with", "killed", "valid"),
    [
        ("connection", [0], True),
        ("connection", [1], False),
        ("connection", [], False),
        ("close", [0], False),
        ("lease", [0], False),
    ],
)
def test_only_a_lock_that_ends_with_its_connection_ends_with_the_death_of_its_holder(
    story, ends_with, killed, valid
):
    story.grant(0, "a", 1, 1001)
    story.fault("kill", 300, 900, ["client-0"], processes=killed)
    story.grant(1, "b", 500, 1500, asked=450)
    assert verdict(story, lock={"ends_with": ends_with}).valid is valid


@pytest.mark.parametrize(
    ("ends_with", "valid"), [("connection", True), ("close", True), ("lease", False)]
)
def test_a_close_ends_the_grants_of_a_lock_that_ends_with_it(story, ends_with, valid):
    story.grant(0, "a", 1, 1001)
    story.call(0, "close", 300, 310, {})
    story.grant(1, "b", 305, 1305, asked=200)
    assert verdict(story, lock={"ends_with": ends_with}).valid is valid


@pytest.mark.parametrize(
    ("ends_with", "valid"), [("connection", True), ("close", True), ("lease", False)]
)
def test_so_does_one_that_began_in_the_instant_in_which_its_client_was_killed(
    story, ends_with, valid
):
    """A request sent before its sender's death may reach the service later."""
    story.grant(0, "a", 1, 1001)
    story.op(300, 0, "invoke", "close", {})
    story.fault("kill", 300, 301, ["client-0"], processes=[0])
    story.op(302, 0, "info", "close", {}, ["killed", "the worker is gone"])
    story.grant(1, "b", 305, 1305, asked=200)
    assert verdict(story, lock={"ends_with": ends_with}).valid is valid


def test_a_grant_before_the_close_was_invoked_is_within_the_lease(story):
    story.grant(0, "a", 1, 1001)
    story.call(0, "close", 300, 310, {})
    story.grant(1, "b", 299, 1305, asked=200)
    assert verdict(story, lock={"ends_with": "close"}).valid is False


def test_a_close_ends_a_grant_that_was_extended(story):
    story.grant(0, "a", 1, 1001)
    story.extend(0, "a", 100, 1100)
    story.call(0, "close", 300, 310, {})
    story.grant(1, "b", 305, 1305, asked=200)
    assert verdict(story, lock={"ends_with": "close"}).valid is True
    assert verdict(story, lock={"ends_with": "lease"}).valid is False


@pytest.mark.parametrize(("ends_with", "valid"), [("close", True), ("lease", False)])
def test_a_process_that_is_gone_without_a_close_may_have_closed_during_its_last_op(
    story, ends_with, valid
):
    story.grant(0, "a", 1, 1001)
    story.write(0, 100, "v", 0, done=600, type="info")
    story.grant(1, "b", 200, 1200, asked=150)
    assert verdict(story, lock={"ends_with": ends_with}).valid is valid


def test_a_grant_before_that_op_began_is_within_the_lease(story):
    story.grant(0, "a", 1, 1001)
    story.write(0, 100, "v", 0, done=600, type="info")
    story.grant(1, "b", 99, 1200, asked=50)
    assert verdict(story, lock={"ends_with": "close"}).valid is False


@pytest.mark.parametrize(
    ("ends_with", "link", "valid"),
    [
        ("connection", ["client-0", "s1"], True),
        ("connection", ["client-0", "storage"], False),
        ("connection", ["client-1", "s1"], False),
        ("close", ["client-0", "s1"], False),
    ],
)
def test_only_a_lock_that_ends_with_its_connection_may_end_while_its_holder_is_cut_off(
    story, ends_with, link, valid
):
    story.grant(0, "a", 1, 1001)
    story.fault("partition", 300, 900, link, arguments={"links": [link]})
    story.grant(1, "b", 500, 1500, asked=450)
    assert verdict(story, servers=["s1"], lock={"ends_with": ends_with}).valid is valid


def test_a_lock_of_an_unknown_kind_of_end_is_an_error(story):
    story.grant(0, "a", 1, 1001)
    with pytest.raises(ValueError, match="choose one of lease, close, connection"):
        verdict(story, lock={"ends_with": "hope"})


def test_a_grant_before_a_client_was_killed_is_within_its_lease(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 200, 1200)
    story.fault("kill", 300, 900, ["client-0"], processes=[0])
    assert verdict(story).valid is False


def waiter(story, released):
    story.grant(0, "a", 1, 5001, ttl=5000)
    story.release(0, "a", released)
    story.grant(1, "b", released + 10, 1010, asked=10)


def test_a_grant_in_the_name_of_an_expired_lease_is_not_linearizable(story):
    """etcd issue 11456: its lease expired before the lock was free."""
    waiter(story, 2500)
    expired(story, 1, 2000)
    assert verdict(story).valid is False
    assert verdict(story, clocks=CLOCKS).valid is False


def test_the_same_holds_if_the_history_does_not_name_the_kind_of_end(story):
    waiter(story, 2500)
    story.op(2000, 1, "info", "lost", {"lock": "orders", "hold": None})
    assert verdict(story).valid is False


def test_one_whose_lease_ends_while_it_asks_for_ever_is_granted_nothing(story):
    story.grant(0, "a", 1, 1001)
    story.call(1, "acquire", 10, None, {"lock": "orders", "ttl": 1000 * MS})
    expired(story, 1, 50)
    assert verdict(story).valid is True


def test_a_release_during_which_a_lease_ends_that_gave_no_grant_is_not_over_by_that(story):
    story.grant(0, "a", 1, 5001, ttl=5000)
    story.release(0, "a", 10, done=100)
    expired(story, 0, 20)
    story.grant(1, "b", 30, 5030, ttl=5000)
    story.extend(0, "a", 110, None, type="fail")
    assert verdict(story).valid is True


def test_a_client_that_retried_by_itself_was_granted_its_request_of_that_time(story):
    """kazoo's recipe, whose session was in doubt or had ended while it waited."""
    waiter(story, 2500)
    value = {"lock": "orders", "hold": None}
    story.op(2000, 1, "info", "lost", value, ["requeued", "the connection is SUSPENDED"])
    assert verdict(story).valid is True
    assert verdict(story, clocks=CLOCKS).valid is True
    expired(story, 1, 2100)
    assert verdict(story).valid is False


def test_it_may_have_been_given_before(story):
    waiter(story, 1500)
    expired(story, 1, 2000)
    story.release(1, "b", 2600)
    assert verdict(story).valid is True


@pytest.mark.parametrize(("meaning", "valid"), [("ended", True), ("nothing", False)])
def test_a_failed_release_means_what_the_test_says(story, meaning, valid):
    story.grant(0, "a", 1, 5001, ttl=5000)
    story.release(0, "a", 10, type="fail", kind="no-quorum")
    story.grant(1, "b", 20, 5020, ttl=5000)
    assert verdict(story, failed_release=meaning).valid is valid


def test_a_lease_that_ends_meanwhile_brings_only_a_grant_forward(story):
    """The release is of a hold whose grant got no answer; the lock was free only at 50 ms."""
    story.grant(1, "b", 1, 1001)
    asked = {"lock": "orders", "ttl": 1000 * MS}
    story.call(0, "acquire", 2, 5, asked, type="info", error=["timeout", "silence"])
    story.call(0, "release", 10, 100, {"lock": "orders"})
    expired(story, 0, 20)
    story.release(1, "b", 50)
    assert verdict(story).valid is True


@pytest.mark.parametrize(("at", "valid"), [(499, False), (500, True), (501, True)])
def test_a_lease_ends_with_the_report_that_it_is_lost(story, at, valid):
    """A library reports that its renewal failed, and releases its keys."""
    story.grant(0, "a", 1, 1001)
    story.op(500, 0, "info", "lost", {"lock": "orders", "hold": "a"}, ["lost", "-"])
    story.grant(1, "b", at, 1500)
    story.release(1, "b", 600)
    story.release(0, "a", 700)
    assert verdict(story).valid is valid


def test_it_ends_with_that_report_after_a_release_that_reached_no_server(story):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 400, type="fail", kind="unreachable")
    story.op(500, 0, "info", "lost", {"lock": "orders", "hold": "a"}, ["lost", "-"])
    story.grant(1, "b", 600, 1600)
    assert verdict(story).valid is True


def test_a_lease_that_another_hold_of_the_process_lost_runs_on(story):
    story.grant(0, "x", 1, 1001, lock="invoices")
    story.grant(0, "a", 2, 1002)
    story.op(500, 0, "info", "lost", {"lock": "invoices", "hold": "x"}, ["lost", "-"])
    story.grant(1, "b", 600, 1600)
    assert verdict(story).valid is False
