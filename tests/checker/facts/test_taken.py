"""The spans in which clients may have a lock, and the words for their ends. Times are in ns."""

from __future__ import annotations

import pytest

from fencepost.checker.facts.closings import Closings
from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.hindered import Hindered
from fencepost.checker.facts.holds import Hold
from fencepost.checker.facts.obstacles import Request
from fencepost.checker.facts.taken import FOREVER, Taken, taken, taken_by_faults
from fencepost.checker.history.history import Call, History, Op

SERVERS = frozenset({"s1", "s2", "s3"})
NONE = Closings(History([]))
S = 10**9


def fault(name, start, end, node, **more):
    impairs = more.pop("impairs", frozenset({node}))
    return Fault(
        name, "pause", [node], {}, start, end, True, True, impairs=impairs, links=(), **more
    )


def hinder(*on, minority=False):
    return Hindered(on, frozenset({"c1"}), SERVERS, minority, False)


def hold(ended_by, strict_end, deadline, *, ttl=7, shared=False):
    leases = ((0, deadline),)
    return Hold("l", "h1", 1, "c1", None, ttl, 0, 1, strict_end, leases, ended_by, 5, shared=shared)


def of_hold(one, over, given=None, hindered=None):
    freed = {} if given is None else {one.index: given}
    (row,) = taken([one], {one.index: over}, freed, [], hindered or hinder(), NONE, 9, 100 * S, 0)
    return row


def test_a_released_hold_says_who_released_it():
    row = of_hold(hold("release", S, 9 * S, shared=True), 2 * S, 2 * S)
    why = "After c1 (process 1) released hold h1 at 2.000 s"
    assert row == Taken(1, 2 * S, 2 * S, why, "shared", False)


@pytest.mark.parametrize("ended_by", ["death", "gone", "close"])
def test_a_holder_that_disappeared_before_its_lease_expired_is_named(ended_by):
    row = of_hold(hold(ended_by, 3 * S, 9 * S), 9 * S)
    why = "After c1 (process 1) disappeared with hold h1 at 3.000 s"
    assert row == Taken(1, 9 * S, 3 * S, why, "exclusive", True)


@pytest.mark.parametrize(
    ("ended_by", "strict_end"), [("death", 9 * S), ("close", 10 * S), ("release", 3 * S)]
)
def test_any_other_hold_ends_with_its_lease(ended_by, strict_end):
    row = of_hold(hold(ended_by, strict_end, 9 * S), 9 * S)
    why = "After the lease of c1 (process 1) expired, of hold h1 at 9.000 s"
    assert row == Taken(1, 9 * S, 9 * S, why, "exclusive", True)


@pytest.mark.parametrize(("ttl", "over"), [(7, 57), (None, 59)])
def test_a_fault_of_its_client_prolongs_a_hold_that_was_not_released(ttl, over):
    client = hinder(fault("f", 10, 50, "c1"))
    one = hold("death", 20, FOREVER, ttl=ttl)
    assert of_hold(one, 30, hindered=client).over == over
    assert of_hold(one, 30, 30, client).over == 30


def asked(node="c1", done=None, over=None, died=False, until=FOREVER):
    """An acquire with a lease of 10, of unknown outcome unless `over` says that it is known."""
    begin = Op(0, 5, 1, "invoke", "acquire", {}, None, node)
    end = None if done is None else Op(1, done, 1, "info", "acquire", {}, None, node)
    asked_until = until if done is None else done
    over = over or (asked_until + 10 if died or done else 5)
    return Call(begin, end), Request(5, asked_until, over, died, asked_until)


def of_request(row, *on):
    found = list(taken([], {}, {}, [row], hinder(*on), NONE, 10, 100, 0))
    assert all(one.at == one.over for one in found)
    return [(one.over, one.why) for one in found]


def test_a_request_that_may_have_been_granted_takes_the_lock():
    why = "After a request of c1 (process 1) that may have been granted"
    assert of_request(asked(done=20)) == [(30, why)]
    assert of_request(asked(node=None, done=20)) == [(30, why.replace("c1", "a client"))]
    assert of_request(asked(done=20, over=5)) == []


def test_a_request_whose_client_is_hindered_takes_the_lock_until_it_is_answered():
    pause = fault("f", 10, 50, "c1")
    assert [over for over, _ in of_request(asked(done=80, over=5), pause)] == [80]
    assert [over for over, _ in of_request(asked(until=60), pause)] == [FOREVER]


def test_the_lease_of_a_request_that_a_fault_held_back_runs_from_its_arrival():
    loss = fault("f", 10, 50, "c1", loses=True)
    # Sent at 10, under way for 40 when the fault ended, with a lease of 10; over at 30 without it.
    assert [over for over, _ in of_request(asked(done=20), loss)] == [100]
    assert [over for over, _ in of_request(asked(until=20, died=True), loss)] == [100]
    late = fault("f", 21, 50, "c1", loses=True)
    assert [over for over, _ in of_request(asked(done=20), late)] == [30]
    pause = fault("f", 10, 50, "c1")
    assert [over for over, _ in of_request(asked(done=20), pause)] == [60]


def by_faults(*on, minority=False):
    return list(taken_by_faults(hinder(*on, minority=minority), [(0, 1000, 4)]))


LAST = "After the last fault was healed"


def test_a_fault_of_servers_takes_the_lock_until_a_lease_after_its_end():
    assert by_faults(fault("a", 10, 20, "s1"), fault("b", 15, 30, "s2")) == [
        Taken(10, 24, 20, "After the end of: pause of s1"),
        Taken(15, 34, 30, LAST),
    ]
    (never,) = by_faults(fault("a", 10, None, "s1"))
    assert (never.begin, never.over, never.at) == (10, FOREVER, FOREVER)


def test_a_fault_that_the_lock_survives_takes_it_for_a_lease_twice():
    assert by_faults(fault("a", S, 5 * S, "s1"), minority=True)[0].over == S + 0
    assert list(
        taken_by_faults(hinder(fault("a", S, 5 * S, "s1"), minority=True), [(0, 9 * S, 4)])
    ) == [
        Taken(S, S + 4, S, "With s1 impaired from 1.000 s"),
        Taken(5 * S, 5 * S + 4, 5 * S, LAST),
    ]
    (begun,) = by_faults(fault("a", 10, None, "s1"), minority=True)
    assert begun == Taken(10, 14, 10, "With s1 impaired from 0.000 s")


def test_a_fault_that_impairs_other_nodes_than_its_targets_names_those():
    one = fault("a", 10, None, "s1", impairs=frozenset({"s3"}))
    assert by_faults(one, minority=True)[0].why == "With s3 impaired from 0.000 s"
    clock = fault("a", 10, None, "s1", impairs=frozenset())
    assert by_faults(clock, minority=True)[0].why == "With s1 impaired from 0.000 s"
