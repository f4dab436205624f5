"""A lock with that promise refuses a request only while another holds it. Times are in ms."""

from __future__ import annotations

from random import Random

import pytest

from fencepost.checker.history.history import History, Op
from fencepost.checker.liveness import liveness
from tests.checker.liveness_stories import LEASE
from tests.histories import MS, Story

PROMISED = {"promises": {"true_refusals": True}}


def told(story, **test):
    return liveness(story.history(), {**PROMISED, **test})


def turn(story, process, hold, at, done):
    story.grant(process, hold, at + 1, at + 1000, asked=at)
    story.release(process, hold, done - 1, done)


def info(story, process, at, done):
    asked = {"lock": "orders", "ttl": 1000 * MS}
    story.call(process, "acquire", at, done, asked, type="info", error=["timeout", "silence"])


def test_a_lone_request_for_a_free_lock_is_not_refused(story):
    turn(story, 1, "a", 0, 100)
    story.denied(2, 200, 1200)
    found = told(story)
    assert found.valid is False
    (evidence,) = found.evidence
    assert evidence["ops"] == [4, 5]
    assert (evidence["time_ns"], evidence["valid"]) == (1200 * MS, False)
    assert evidence["what"] == (
        "client-2 (process 2) asked for the lock from 0.200 s to 1.200 s and was refused, "
        "though no other client held it or asked for it."
    )
    assert liveness(story.history(), {}).valid is not False


def test_a_refusal_is_named_once(story):
    story.denied(2, 200, 300)
    assert len(told(story).evidence) == 1


def test_a_refusal_while_a_client_holds_the_lock_is_correct(story):
    turn(story, 1, "a", 0, 500)
    story.denied(2, 499, 600)
    turn(story, 1, "b", 1000, 1500)
    assert told(story).valid is True


def test_a_refusal_before_the_first_grant_counts(story):
    story.denied(2, 0, 50)
    turn(story, 1, "a", 100, 500)
    assert told(story).valid is False


def test_the_end_of_a_hold_without_a_release_is_unknown(story):
    story.grant(1, "a", 0, 1000)
    story.denied(2, 5000, 5100)
    turn(story, 3, "b", 6000, 6100)
    assert told(story).valid is True
    story.denied(2, 7000, 7100)
    assert told(story).valid is False


@pytest.mark.parametrize(
    ("type", "kind", "ends"),
    [
        ("info", "timeout", False),
        ("fail", "unreachable", False),
        ("fail", "no-quorum", False),
        ("fail", "not-held", True),
    ],
)
def test_a_release_that_was_answered_ok_or_refused_ends_a_hold(story, type, kind, ends):
    story.grant(1, "a", 0, 1000)
    story.release(1, "a", 10, 20, type=type, kind=kind)
    story.denied(2, 50, 100)
    assert (told(story).valid is False) is ends


def test_the_earliest_later_grant_ends_a_hold_whichever_process_got_it(story):
    story.grant(0, "a", 1, 1001)  # its end was never seen
    turn(story, 2, "b", 2000, 2100)
    story.denied(3, 2200, 2300)
    turn(story, 1, "c", 3000, 3100)
    assert told(story).valid is False


def test_two_later_grants_at_one_time_end_a_hold(story):
    story.grant(0, "a", 1, 1001)
    story.grant("late", "b", 2000, 2050, asked=1990)
    story.grant(1, "c", 2000, 2050, asked=1990)
    story.release("late", "b", 2010, 2020)
    story.release(1, "c", 2030, 2040)
    story.denied(3, 2200, 2300)
    assert told(story).valid is False


def test_a_refused_extend_ends_no_hold(story):
    story.grant(1, "a", 0, 1000)
    story.extend(1, "a", 10, None, type="fail")
    story.denied(2, 50, 100)
    assert told(story).valid is not False


def at_once(story, *, first=(0, 500), second=(400, 900), kind="not-granted", **asked):
    """Two clients ask at the same time, and are refused."""
    asked = {"lock": "orders", "ttl": 1000 * MS, **asked}
    for client, (begin, end) in ((1, first), (2, second)):
        error = [kind if client == 2 else "not-granted", "no"]
        story.call(client, "acquire", begin, end, asked, type="fail", error=error)
    turn(story, 1, "a", 2000, 2100)


def test_of_two_clients_that_ask_at_once_one_is_granted_a_free_lock(story):
    at_once(story)
    found = told(story)
    assert found.valid is False
    (row,) = found.evidence
    assert row["what"] == (
        "2 requests of client-1, client-2 for the lock, open from 0.000 s to 0.900 s, were all "
        "refused, though no client held it."
    )
    assert (row["ops"], row["time_ns"], row["valid"]) == ([0, 1, 2, 3], 900 * MS, False)


@pytest.mark.parametrize(
    ("test", "valid"),
    [
        ({"servers": ["redis-1"]}, False),
        ({"servers": ["redis-1", "redis-2"]}, True),
        ({"servers": ["redis-1", "redis-2"], "lock": {"ends_with": "close"}}, False),
    ],
)
def test_they_may_refuse_one_another_if_they_ask_each_server(story, test, valid):
    at_once(story)
    assert told(story, **test).valid is valid


@pytest.mark.parametrize(("end", "valid"), [(999, False), (1000, True)])
def test_one_may_have_given_back_a_grant_that_came_after_its_lease(story, end, valid):
    at_once(story, first=(0, end))
    assert told(story).valid is valid


def test_without_a_lease_no_grant_is_given_back(story):
    at_once(story, first=(0, 1900), ttl=None)
    assert told(story).valid is False


def test_one_that_failed_otherwise_may_have_had_it(story):
    at_once(story, kind="no-quorum")
    assert told(story).valid is True


@pytest.mark.parametrize(
    ("begin", "end", "valid"),
    [(-20, -1, False), (-20, 0, True), (900, 950, True), (901, 950, False)],
)
def test_a_fault_may_excuse_them(story, begin, end, valid):
    story.fault("pause", 100 + begin, 100 + end, ["client-9"])
    at_once(story, first=(100, 500), second=(400, 1000))
    assert told(story).valid is valid


@pytest.mark.parametrize(("released", "valid"), [(299, False), (300, True)])
def test_a_hold_may_have_been_in_their_way(story, released, valid):
    turn(story, 3, "h", 100, released)
    at_once(story, first=(300, 500), second=(400, 900))
    assert told(story).valid is valid


@pytest.mark.parametrize(("asked", "valid"), [(900, True), (901, False)])
def test_a_later_request_may_have_been_granted_first(story, asked, valid):
    at_once(story)
    story.grant(3, "b", 1000, 2000, asked=asked)
    story.release(3, "b", 1100, 1200)
    assert told(story).valid is valid


def test_holds_that_were_given_back_before_are_in_nobodys_way(story):
    turn(story, 3, "h", 0, 100)
    turn(story, 3, "i", 110, 200)
    at_once(story, first=(250, 500))
    assert told(story).valid is False


CLOCKS = {f"client-{n}": {"bound_ns": 2 * MS} for n in (1, 2, 3)}


@pytest.mark.parametrize(("released", "valid"), [(295, False), (296, True)])
def test_a_hold_may_have_been_in_their_way_by_another_hosts_clock(story, released, valid):
    turn(story, 3, "h", 100, released)
    at_once(story, first=(300, 500), second=(400, 900))
    assert told(story, clocks=CLOCKS).valid is valid


@pytest.mark.parametrize(("begin", "named"), [(504, [[0, 1, 2, 3]]), (505, [[0, 1], [2, 3]])])
def test_they_may_have_been_open_at_once_by_another_hosts_clock(story, begin, named):
    at_once(story, second=(begin, 900))
    assert [row["ops"] for row in told(story, clocks=CLOCKS).evidence] == named


def test_a_promise_that_all_who_asked_saw_broken_was_put_to_the_test(story):
    for client, begin in ((1, 0), (2, 400)):
        story.denied(client, begin, begin + 500)
    found = told(story)
    assert found.valid is False
    assert "true_refusals" not in found.details["untested"]


def test_a_request_of_unknown_outcome_among_them_may_have_been_granted(story):
    at_once(story)
    info(story, 3, 500, 600)
    assert told(story).valid is not False


def test_a_request_without_an_answer_excuses_refusals_for_its_lease_and_the_bound(story):
    turn(story, 1, "a", 0, 100)
    info(story, 1, 200, 300)
    # It arrives within a tenth of 5 s, and stands for its lease of 1 s, and 5 s.
    story.denied(2, 6800, 6900)
    turn(story, 1, "b", 20_000, 20_100)
    assert told(story).valid is True
    story.denied(2, 6901, 6950)
    assert told(story).valid is False


def test_a_request_held_back_by_a_fault_may_arrive_as_long_after_it_as_it_was_under_way(story):
    turn(story, 1, "a", 0, 100)
    story.fault("partition", 150, 2200, ["client-1", "redis-1"], impairs=["client-1"])
    info(story, 1, 200, 300)
    # It arrives by 2.2 + 2.0 + 0.5 s, and stands for 6 s.
    story.denied(2, 10_700, 10_800)
    turn(story, 2, "b", 20_000, 20_100)
    assert told(story).valid is True
    story.denied(2, 10_801, 10_810)
    assert told(story).valid is False


@pytest.mark.parametrize(("at", "refused", "valid"), [(4700, 17_000, True), (4701, 10_801, False)])
def test_a_fault_holds_a_request_back_if_it_began_before_that_had_arrived(
    story, at, refused, valid
):
    turn(story, 1, "a", 0, 100)
    cut = {"arguments": {"links": [["client-1", "redis-1"]]}}
    story.fault("partition", 150, 2200, ["redis-1"], **cut)
    info(story, 1, 200, 300)
    story.fault("partition", at, at + 700, ["redis-1"], **cut)
    story.denied(3, refused, refused + 50)
    turn(story, 3, "b", 20_000, 20_100)
    assert told(story, servers=["redis-1"]).valid is valid


@pytest.mark.parametrize(
    ("family", "impairs", "links", "valid"),
    [
        ("pause", ["redis-1"], [], True),
        ("pause", ["client-1"], [], False),
        ("partition", ["redis-1"], [["client-1", "redis-1"]], False),
        ("partition", ["redis-1"], [["redis-2", "redis-1"]], True),
    ],
)
def test_only_a_fault_of_servers_prolongs_the_lease_of_a_request_that_has_arrived(
    story, family, impairs, links, valid
):
    turn(story, 1, "a", 0, 100)
    info(story, 1, 200, 300)
    story.fault(family, 6700, 6800, impairs, impairs=impairs, arguments={"links": links})
    story.denied(3, 12_700, 12_800)
    turn(story, 3, "b", 20_000, 20_100)
    assert told(story, servers=["redis-1", "redis-2"]).valid is valid


@pytest.mark.parametrize(
    ("client", "asked", "modes", "valid"),
    [
        (2, 801, (False, False), False),
        (2, 800, (False, False), True),  # it may have arrived after this grant
        (1, 801, (False, False), True),  # the same client: the lock may be reentrant
        (2, 801, (True, False), False),
        (2, 801, (False, True), False),
        (2, 801, (True, True), True),
    ],
)
def test_a_grant_to_another_client_ends_a_request_that_has_arrived(
    story, client, asked, modes, valid
):
    requested, granted = modes
    value = {"lock": "orders", "ttl": 1000 * MS} | ({"mode": "shared"} if requested else {})
    story.call(1, "acquire", 200, 300, value, type="info", error=["timeout", "silence"])
    story.grant(client, "a", 900, 5000, asked=asked, shared=granted)
    story.release(client, "a", 1000, 1100)
    story.denied(3, 1200, 1300)
    turn(story, 3, "b", 20_000, 20_100)
    assert told(story).valid is valid


def test_the_first_of_several_grants_to_other_clients_ends_a_request():
    seen = 0
    for seed in range(600):
        random = Random(seed)
        story, grants = Story(), []
        info(story, 1, 0, 100)  # it has arrived at 600
        at = 150
        for number in range(random.randrange(5)):
            client, asked = random.choice((1, 2, 3)), at
            at += random.randrange(1, 300)
            story.grant(client, f"h{number}", at, at + 1000, asked=asked)
            grants += [at] if client != 1 and asked > 600 else []
            story.release(client, f"h{number}", at + 1, at + 2)
            at += random.randrange(3, 100)
        story.denied(4, at, at + 1)
        turn(story, 4, "last", 20_000, 20_100)
        refused = any("refused" in row["what"] for row in told(story).evidence)
        assert refused is bool(grants), seed
        seen += refused
    assert 100 < seen < 500


def without_nodes(story):
    """Return the history of clients that name no node."""
    ops = story.history().ops
    return History([Op(o.index, o.time, o.process, o.type, o.f, o.value, o.error) for o in ops])


def test_clients_without_a_node_are_named_by_their_process(story):
    at_once(story)
    (row,) = liveness(without_nodes(story), PROMISED).evidence
    assert row["what"].startswith("2 requests of process 1, process 2 for the lock")


@pytest.mark.parametrize(("client", "valid"), [(2, False), (1, True)])
def test_a_grant_to_another_process_without_a_node_ends_a_request(story, client, valid):
    info(story, 1, 200, 300)
    turn(story, client, "a", 801, 1100)
    story.denied(3, 1200, 1300)
    turn(story, 3, "b", 20_000, 20_100)
    assert liveness(without_nodes(story), PROMISED).valid is valid


@pytest.mark.parametrize(("offset", "until"), [(0.0, 12_000), (2.0, 14_000), (-2.0, 14_000)])
def test_a_wrong_clock_of_a_server_prolongs_the_lease_and_holds_nothing_back(story, offset, until):
    turn(story, 1, "a", 0, 100)
    info(story, 1, 200, 300)
    wrong = {"impairs": [], "arguments": {"offset_s": offset}}
    story.fault("clock", 250, 6000, ["redis-1"], **wrong)
    story.denied(3, until, until + 100)
    turn(story, 3, "b", 20_000, 20_100)
    assert told(story, servers=["redis-1"]).valid is True
    story.denied(3, until + 101, until + 110)
    assert told(story, servers=["redis-1"]).valid is False


@pytest.mark.parametrize(
    ("family", "client", "valid"),
    [("packet", "client-1", True), ("packet", "client-3", False), ("pause", "client-1", False)],
)
def test_only_faults_in_the_way_of_a_request_hold_it_back(story, family, client, valid):
    turn(story, 1, "a", 0, 100)
    info(story, 1, 200, 300)
    story.fault(
        family, 500, 1000, [client], arguments={"kind": "loss"} if family == "packet" else {}
    )
    story.denied(3, 7500, 7600)
    turn(story, 3, "b", 20_000, 20_100)
    assert told(story).valid is valid


@pytest.mark.parametrize(
    ("links", "valid"),
    [
        ([["client-1", "redis-1"]], True),
        ([["client-3", "redis-1"]], False),
        ([["client-3", "redis-1"], ["redis-2", "redis-1"]], True),
    ],
)
def test_a_cut_holds_back_what_crosses_it(story, links, valid):
    turn(story, 1, "a", 0, 100)
    info(story, 1, 200, 300)
    story.fault("partition", 500, 1000, ["redis-1"], arguments={"links": links})
    story.denied(3, 7500, 7600)
    turn(story, 3, "b", 20_000, 20_100)
    assert told(story, servers=["redis-1", "redis-2"]).valid is valid


def cut_by_reset(story, start, end, *, links=None, **more):
    links = links or [["client-1", "redis-1"]]
    arguments = {"links": links, "how": "reject"}
    story.fault("partition", start, end, ["client-1", "redis-1"], arguments=arguments, **more)


@pytest.mark.parametrize(
    ("closed", "type", "until"),
    [
        (None, "ok", 20_700),  # 7.2 + 7.0 + 0.5 s, and 6 s: its library may send it after the cut
        (400, "ok", 7700),  # 0.7 s, when the cut was put in place, + 0.5 + 0.5 s, and 6 s
        (1400, "ok", 7900),
        (400, "info", 20_700),
    ],
)
def test_a_cut_that_rejects_holds_nothing_back_of_a_client_that_has_closed(
    story, closed, type, until
):
    turn(story, 1, "a", 0, 100)
    cut_by_reset(story, 700, 7200)
    info(story, 1, 200, 300)
    if closed:
        error = ["raised", "-"] if type == "info" else None
        story.call(1, "close", 310, closed, {}, type=type, error=error)
    story.denied(3, until, until + 50)
    turn(story, 3, "b", 40_000, 40_100)
    assert told(story, servers=["redis-1"]).valid is True
    story.denied(3, until + 51, until + 60)
    assert told(story, servers=["redis-1"]).valid is False


def test_a_dead_client_sends_nothing_more_behind_a_cut_that_rejects(story):
    turn(story, 1, "a", 0, 100)
    cut_by_reset(story, 150, 7200)
    asked = {"lock": "orders", "ttl": 1000 * MS}
    story.call(1, "acquire", 200, 400, asked, type="info", error=["killed", "-"])
    story.fault("kill", 390, 395, ["client-1"], processes=[1])
    story.denied(3, 6901, 6950)
    turn(story, 3, "b", 40_000, 40_100)
    assert told(story, servers=["redis-1"]).valid is False


@pytest.mark.parametrize(
    ("start", "edges", "until"),
    [
        (250, {"placed": 600}, 7550),  # 0.6 + 0.45 + 0.5 s, and 6 s
        (250, {"placed": 600, "proved": False}, 21_150),  # 7.4 + 7.25 + 0.5 s, and 6 s
        (250, {"links": [["client-1", "redis-1"], ["redis-2", "redis-1"]]}, 21_150),
        (650, {"ordered": 800}, 21_150),
        (650, {"ordered": 1650}, 21_150),
        (650, {"ordered": 1651}, 7650),  # it had arrived at 0.65 + 0.5 + 0.5 s
    ],
)
def test_a_cut_that_rejects_may_drop_messages_until_it_is_in_place_and_while_it_is_taken_off(
    story, start, edges, until
):
    turn(story, 1, "a", 0, 100)
    cut_by_reset(story, start, 7400, **edges)
    info(story, 1, 150, 300)
    story.call(1, "close", 310, 310, {})
    story.denied(3, until, until + 10)
    turn(story, 3, "b", 40_000, 40_100)
    promised = {"servers": ["redis-1", "redis-2"], "lock": {"ends_with": "close"}}
    assert told(story, **promised).valid is True
    story.denied(3, until + 11, until + 20)
    assert told(story, **promised).valid is False


def test_a_request_that_is_still_open_excuses_all_later_refusals(story):
    turn(story, 1, "a", 0, 100)
    story.call(1, "acquire", 200, None, {"lock": "orders", "ttl": 1000 * MS})
    story.denied(2, 90_000, 90_100)
    turn(story, 3, "b", 91_000, 91_100)
    assert not any("was refused" in row["what"] for row in told(story).evidence)


def test_a_request_without_any_lease_excuses_all_later_refusals(story):
    turn(story, 1, "a", 0, 100)
    story.call(3, "acquire", 200, 300, {"lock": "free"}, type="info", error=["timeout", "silence"])
    story.call(
        2, "acquire", 90_000, 90_100, {"lock": "free"}, type="fail", error=["not-granted", "False"]
    )
    turn(story, 1, "b", 91_000, 91_100)
    assert told(story).valid is True


def test_only_a_refusal_by_the_lock_is_one(story):
    turn(story, 1, "a", 0, 100)
    asked = {"lock": "orders", "ttl": 1000 * MS}
    story.call(2, "acquire", 200, 300, asked, type="fail", error=["unreachable", "refused"])
    turn(story, 1, "b", 400, 500)
    assert told(story).valid is True


def test_each_lock_is_judged_by_itself(story):
    story.grant(1, "a", 0, 1000, lock="other")
    story.denied(2, 100, 200)
    assert told(story).valid is False


def test_stamps_of_two_hosts_may_be_apart(story):
    turn(story, 1, "a", 0, 100)
    story.denied(2, 104, 200)
    turn(story, 1, "b", 1000, 1100)
    clocks = {f"client-{n}": {"bound_ns": 2 * MS} for n in (1, 2)}
    assert told(story, clocks=clocks).valid is True
    assert told(story, clocks={name: {"bound_ns": 1 * MS} for name in clocks}).valid is False


def test_a_request_just_after_a_refusal_may_precede_it_by_another_host_s_clock(story):
    turn(story, 1, "a", 0, 100)
    story.denied(2, 200, 300)
    turn(story, 1, "b", 304, 400)
    clocks = {f"client-{n}": {"bound_ns": 2 * MS} for n in (1, 2)}
    assert told(story, clocks=clocks).valid is True
    assert told(story, clocks={name: {"bound_ns": 1 * MS} for name in clocks}).valid is False


def test_a_second_grant_to_the_holder_does_not_end_its_first_hold(story):
    story.grant(1, "outer", 1, 60_000)
    story.grant(1, "inner", 11, 60_000)
    story.release(1, "inner", 20, 30)
    story.denied(2, 40, 50)
    assert told(story).valid is not False
    story.release(1, "outer", 60, 70)
    story.denied(2, 80, 90)
    assert told(story).valid is False


def test_a_grant_to_another_process_ends_both_holds_of_one(story):
    story.grant(1, "outer", 1, 60_000)
    story.grant(1, "inner", 11, 60_000)
    turn(story, 2, "b", 100, 200)
    story.denied(3, 300, 310)
    assert told(story).valid is False


@pytest.mark.parametrize(("asked", "valid"), [(5, True), (20, True), (21, False)])
def test_a_grant_that_was_asked_for_before_may_be_older_and_ends_no_hold(story, asked, valid):
    """Its client was stopped before it read the answer."""
    story.grant(1, "stays", 20, 60_000, asked=10)
    story.grant(2, "late", 200, 150, asked=asked)
    story.release(2, "late", 210, 220, type="fail")
    story.denied(3, 300, 310)
    assert (told(story).valid is not False) is valid


def test_a_reader_beside_it_does_not_end_a_shared_hold_but_a_writer_does(story):
    story.grant(1, "stays", 1, 60_000, shared=True)
    story.grant(2, "goes", 11, 60_000, shared=True)
    story.release(2, "goes", 20, 30)
    story.denied(3, 40, 50)
    assert told(story).valid is not False
    turn(story, 4, "writes", 100, 200)
    story.denied(3, 300, 310)
    assert told(story).valid is False


def test_the_first_release_that_was_answered_ok_ends_a_hold(story):
    turn(story, 1, "a", 0, 100)
    story.denied(2, 200, 300)
    story.release(1, "a", 400, 500)
    assert told(story).valid is False


def test_a_promise_that_was_not_put_to_the_test_is_named(story):
    info(story, 1, 0, 10)
    story.grant(2, "a", 100, 1100)
    assert told(story).details["untested"] == ["true_refusals", LEASE]
    turn(story, 3, "b", 2000, 2100)
    assert "true_refusals" in told(story).details["untested"]


def test_one_answer_to_a_lone_request_tests_the_promise(story):
    turn(story, 1, "a", 0, 100)
    assert "true_refusals" not in told(story).details["untested"]


def drawn(random):
    """Draw a story of some clients, and the ticks at which each request may hold the lock."""
    story, occupied, refused = Story(), [], []
    grants = []
    for process in range(3):
        at = 0
        for number in range(random.randrange(4)):
            at += random.randrange(1, 30)
            done = at + random.randrange(1, 30)
            kind = random.choice(("denied", "denied", "info", "kept", "released"))
            mine = len(occupied)
            if kind == "denied":
                story.denied(process, at, done)
                refused.append((mine, at, done))
                occupied.append((at, done))
            elif kind == "info":
                info(story, process, at, done)
                occupied.append((at, 10**6))
            else:
                story.grant(process, f"{process}-{number}", done, done + 1000, asked=at)
                grants.append((done, mine, process, at))
                occupied.append((at, 10**6))
                if kind == "released":
                    story.release(process, f"{process}-{number}", done + 2, done + 5)
                    occupied[mine] = (at, done + 5)
                    done += 5
            at = done
    for granted, mine, process, _ in grants:
        later = (until for until, _, other, at in grants if other != process and at > granted)
        begin, over = occupied[mine]
        occupied[mine] = (begin, min([over, *later]))
    return story, occupied, refused


def test_it_agrees_with_a_look_at_every_millisecond():
    said = []
    for seed in range(1500):
        story, occupied, refused = drawn(Random(seed))
        lonely = [
            at
            for mine, at, done in refused
            if not any(
                begin <= tick <= over
                for tick in range(at, done + 1)
                for other, (begin, over) in enumerate(occupied)
                if other != mine
            )
        ]
        # On several servers, clients that ask at once may refuse one another.
        found = told(story, servers=["redis-1", "redis-2", "redis-3"])
        untrue = [row for row in found.evidence if "refused" in row["what"]]
        assert sorted(round(story.history().ops[row["ops"][0]].time / MS) for row in untrue) == (
            sorted(lonely)
        ), seed
        said.append(found.valid is False)
    assert 200 < sum(said) < 1300
