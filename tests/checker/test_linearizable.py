"""The lock's ops against the lease-mutex model, with leases as the client may count on them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.checker.exclusion import lease_exclusion
from fencepost.checker.history import History
from fencepost.checker.linearizable import linearizable
from histories import MS


def verdict(story, **test):
    return linearizable(story.history(), test)


def renewed(story, process, hold, at, until):
    value = {"lock": "orders", "hold": hold, "deadline": until * MS}
    story.op(at, process, "info", "renewed", value)


def expired(story, process, at):
    story.op(at, process, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "gone"])


def test_without_a_grant_nothing_was_tested(story):
    story.denied(0, 1, 2)
    assert verdict(story).valid == "unknown"


def test_turns_are_valid(story):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 5)
    story.grant(1, "b", 6, 1006)
    found = verdict(story, lock={"ends_with": "close"})
    assert found.valid is True
    assert found.summary == "3 ops of the lock fit one order in which every lease is kept."
    assert found.evidence == []
    assert found.details == {
        "model": "lease-mutex",
        "operations": 3,
        "failed_release": "ended",
        "ends_with": "close",
        "untested": [],
    }


def test_a_search_that_does_not_end_leaves_it_unknown(story, monkeypatch):
    monkeypatch.setattr("fencepost.checker.linearizable._TIME_LIMIT_S", -1.0)
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1500)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.summary.startswith("The search did not end: time limit of -1 s reached")
    assert found.evidence == []
    assert list(found.details) == ["model", "operations", "failed_release", "ends_with"]


def test_a_grant_within_another_s_lease_fits_nowhere_and_the_sentence_says_why(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1500)
    found = verdict(story)
    assert found.valid is False
    assert "client-1 (process 1)" in found.summary
    assert "fits nowhere" in found.summary
    assert found.evidence[0]["ops"]


def test_a_grant_after_the_lease_is_fine(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 1500, 2500, asked=1400)
    assert verdict(story).valid is True


def test_a_session_that_was_heard_of_earlier_may_end_earlier(story):
    """Its deadline is 0.3 s after the grant although a lease of 1 s was asked for."""
    story.grant(0, "a", 1, 301)
    story.grant(1, "b", 500, 1500, asked=450)
    assert verdict(story).valid is True


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


def test_where_no_deadline_can_be_seen_the_grant_may_end_at_any_time(story):
    story.grant(0, "a", 1, None)
    story.grant(1, "b", 500, None, asked=450)
    assert verdict(story).valid is True


def test_a_renewal_in_the_background_makes_the_lease_longer(story):
    story.grant(0, "a", 1, 1001)
    renewed(story, 0, "a", 800, 1800)
    story.grant(1, "b", 1500, 2500, asked=1400)
    assert verdict(story).valid is False
    assert lease_exclusion(story.history(), {}).valid is False


def test_a_renewal_that_came_too_late_does_not(story):
    story.grant(0, "a", 1, 1001)
    renewed(story, 0, "a", 1200, 2200)
    story.grant(1, "b", 1500, 2500, asked=1400)
    assert verdict(story).valid is True


def test_renewals_after_an_extend_make_its_lease_longer(story):
    story.grant(0, "a", 1, 1001)
    story.extend(0, "a", 900, 1900)
    renewed(story, 0, "a", 1800, 2800)
    story.grant(1, "b", 2500, 3500, asked=2400)
    assert verdict(story).valid is False


def test_a_renewal_before_an_extend_that_shortens_the_lease_counts_no_more(story):
    story.grant(0, "a", 1, 1001)
    renewed(story, 0, "a", 500, 1500)
    story.call(
        0,
        "extend",
        600,
        601,
        {"lock": "orders", "hold": "a", "ttl": 100 * MS},
        {"deadline": 700 * MS},
    )
    story.grant(1, "b", 800, 1800, asked=750)
    assert verdict(story).valid is True


def test_a_renewal_that_shows_no_deadline_says_nothing(story):
    story.grant(0, "a", 1, 1001)
    value = {"lock": "orders", "hold": "a", "deadline": None}
    story.op(800, 0, "info", "renewed", value)
    story.grant(1, "b", 1100, 2100, asked=1050)
    assert verdict(story).valid is True


def test_an_extend_answered_ok_after_another_was_granted_the_lock_fits_nowhere(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 1200, 2200, asked=1100)
    story.release(1, "b", 1300)
    story.extend(0, "a", 1400, 2400)
    assert verdict(story).valid is False


def test_shared_holds_have_no_model_with_leases(story):
    value = {"lock": "orders", "ttl": 1000 * MS, "mode": "shared"}
    story.call(0, "acquire", 0, 1, value, {"hold": "a", "token": None, "deadline": 1000 * MS})
    story.call(1, "acquire", 2, 3, value, {"hold": "b", "token": None, "deadline": 1000 * MS})
    assert verdict(story).valid == "unknown"


CLOCKS = {f"client-{n}": {"offset_ns": 0, "bound_ns": 4 * MS} for n in (0, 1)}


@pytest.mark.parametrize(("released", "valid"), [(507, True), (509, False)])
def test_a_release_is_before_a_grant_as_far_as_the_clocks_may_be_off(story, released, valid):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", released)
    story.grant(1, "b", 500, 1500, asked=450)
    assert verdict(story, clocks=CLOCKS).valid is valid


@pytest.mark.parametrize(("granted", "valid"), [(992, False), (994, True)])
def test_a_lease_is_over_as_far_as_the_clocks_may_be_off(story, granted, valid):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", granted, 2500, asked=450)
    assert verdict(story, clocks=CLOCKS).valid is valid


def test_a_release_that_may_have_come_after_the_next_grant_does_not_make_its_lease_last(story):
    """Neither names its hold."""
    asked = {"lock": "orders", "ttl": 1000 * MS}
    story.call(0, "acquire", 1, 1, asked, {"deadline": 1001 * MS})
    story.call(0, "release", 100, 100, {"lock": "orders"})
    story.call(0, "acquire", 102, 104, asked, {"deadline": 1104 * MS})
    story.call(1, "acquire", 1400, 1500, asked, {"deadline": 2500 * MS})
    assert verdict(story, clocks=CLOCKS).valid is True


def test_with_clocks_of_several_hosts_it_is_told_how_far_an_order_could_be_found(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1500, asked=450)
    found = verdict(story, clocks=CLOCKS)
    assert found.summary == (
        "No order of the lock's ops keeps every lease; the search found none beyond 0.450 s."
    )
    assert found.evidence == [{"what": found.summary, "time_ns": 450 * MS, "ops": [2]}]


def test_the_counterexample_is_small_and_names_its_ops(story):
    story.grant(2, "z", 0, 1000, asked=0)
    story.release(2, "z", 0)
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1500, asked=450)
    found = verdict(story)
    assert found.summary == (
        "client-1 (process 1): acquire, invoked at 0.450 s, fits nowhere in any order of the "
        "lock's ops that keeps every lease: 1 (hold b) can't acquire: 0 (hold a) holds it and "
        "can't expire before 1.001000 s. No fault was on at that time."
    )
    assert found.evidence == [{"what": found.summary, "time_ns": 450 * MS, "ops": [4, 6]}]


def test_an_op_that_fits_nowhere_is_told_with_its_hold_and_the_fault_that_was_on(story):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 5)
    story.extend(0, "a", 20, 1020)
    story.fault("pause", 2, 8, ["s1"])
    story.fault("pause", 19, 30, ["s2"])
    found = verdict(story)
    assert found.valid is False
    assert "client-0 (process 0): extend of hold a, invoked at 0.020 s, fits" in found.summary
    assert found.summary.endswith(" On at that time: pause of s2 (from 0.019 s).")
    assert found.details == {
        "model": "lease-mutex",
        "operations": 3,
        "failed_release": "ended",
        "ends_with": "lease",
    }


def unnamed(story, process, hold, at):
    """A grant that neither names a lease nor tells its end."""
    story.call(process, "acquire", at, at, {"lock": "orders"}, {"hold": hold, "deadline": None})


def test_a_grant_that_names_no_lease_lasts_until_it_is_released(story):
    unnamed(story, 0, "a", 1)
    story.release(0, "a", 5)
    unnamed(story, 1, "b", 6)
    assert verdict(story).valid is True
    assert verdict(story).details["untested"] == []
    unnamed(story, 2, "c", 10_000)
    assert verdict(story).valid is False


@pytest.mark.parametrize(("ends_with", "valid"), [("close", True), ("lease", False)])
def test_a_grant_that_names_no_lease_may_end_with_its_client(story, ends_with, valid):
    unnamed(story, 0, "a", 1)
    story.call(0, "close", 100, 110, {})
    unnamed(story, 1, "b", 120)
    assert verdict(story, lock={"ends_with": ends_with}).valid is valid


def test_a_renewal_in_the_instant_in_which_an_extend_is_answered_makes_that_one_last(story):
    story.grant(0, "a", 1, 1001)
    story.extend(0, "a", 100, 1100)
    renewed(story, 0, "a", 100, 1500)
    story.grant(1, "b", 1200, 2200)
    assert verdict(story).valid is False


def test_with_one_client_exclusion_is_named_as_untested(story):
    story.grant(0, "a", 1, None)
    found = verdict(story)
    assert found.valid is True
    assert found.details["untested"] == [
        "two clients that want one lock",
        "a lease that the client can see",
    ]
    assert found.summary.endswith(
        "Not tested: two clients that want one lock, a lease that the client can see."
    )


def test_a_client_that_goes_on_as_another_process_is_the_same_client(story):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 5)
    story.grant(1, "b", 6, 1006)
    history = History([replace(op, node="client-1") for op in story.history()])
    assert linearizable(history, {}).details["untested"] == ["two clients that want one lock"]


def waiter(story, released):
    story.grant(0, "a", 1, 5001, ttl=5000)
    story.release(0, "a", released)
    story.grant(1, "b", released + 10, 1010, asked=10)


def test_a_grant_in_the_name_of_a_lease_that_was_over_by_then_fits_nowhere(story):
    """etcd issue 11456: its lease was over before the lock was free."""
    waiter(story, 2500)
    expired(story, 1, 2000)
    assert verdict(story).valid is False
    assert verdict(story, clocks=CLOCKS).valid is False


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


def test_it_may_have_been_given_before(story):
    waiter(story, 1500)
    expired(story, 1, 2000)
    story.release(1, "b", 2600)
    assert verdict(story).valid is True


@pytest.mark.parametrize(("meaning", "valid"), [("ended", True), ("nothing", False)])
def test_a_failed_release_means_what_the_test_says(story, meaning, valid):
    story.grant(0, "a", 1, 5001, ttl=5000)
    story.release(0, "a", 10, type="fail")
    story.grant(1, "b", 20, 5020, ttl=5000)
    assert verdict(story, failed_release=meaning).valid is valid


def test_a_lease_that_ends_meanwhile_brings_only_a_grant_forward(story):
    """The release is of a hold whose grant nobody heard of; the lock was free only at 50 ms."""
    story.grant(1, "b", 1, 1001)
    asked = {"lock": "orders", "ttl": 1000 * MS}
    story.call(0, "acquire", 2, 5, asked, type="info", error=["timeout", "silence"])
    story.call(0, "release", 10, 100, {"lock": "orders"})
    expired(story, 0, 20)
    story.release(1, "b", 50)
    assert verdict(story).valid is True


def test_a_fault_that_begins_while_the_op_is_under_way_is_named(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1500, asked=450)
    story.fault("pause", 480, 600, ["s1"])
    assert verdict(story).summary.endswith(" On at that time: pause of s1 (from 0.480 s).")


def test_where_there_is_no_time_for_evidence_the_op_that_failed_is_told_without_a_reason(
    story, monkeypatch
):
    monkeypatch.setattr("fencepost.checker.linearizable._EVIDENCE_S", -1.0)
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1500, asked=450)
    found = verdict(story)
    assert found.summary == (
        "client-1 (process 1): acquire, invoked at 0.450 s, fits nowhere in any order of the "
        "lock's ops that keeps every lease. No fault was on at that time."
    )
    assert found.evidence == [{"what": found.summary, "time_ns": 450 * MS, "ops": [2]}]


def test_where_there_is_no_time_to_find_that_op_it_is_told_how_far_the_search_came(
    story, monkeypatch
):
    """With a token that is given twice, and an acquire that may or may not have been granted: the
    search drops ways then, and may stop at another op than the first that fails."""
    monkeypatch.setattr("fencepost.checker.linearizable._EVIDENCE_S", -1.0)
    story.grant(1, "z", 10, 13, asked=5, ttl=3)
    story.grant(0, "a", 12, 21, asked=11, token=4, ttl=10)
    story.call(3, "acquire", 18, None, {"lock": "orders", "ttl": 10 * MS})
    story.release(1, "z", 19, 24)
    story.grant(2, "b", 32, 62, asked=26, token=4, ttl=30)
    found = verdict(story)
    assert found.summary == (
        "No order of the lock's ops keeps every lease; the search found none beyond 0.026 s."
    )
    assert found.valid is False
    assert found.evidence == [{"what": found.summary, "time_ns": 26 * MS, "ops": [7]}]
    assert found.details == {
        "model": "lease-mutex",
        "operations": 5,
        "failed_release": "ended",
        "ends_with": "lease",
    }
