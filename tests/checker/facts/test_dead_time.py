"""When a lock was dead, and how often it was granted in time. Times are in ns, the bound is 100."""

from __future__ import annotations

import pytest

from fencepost.checker.facts.dead_time import FOREVER, DeadTime, DeadTimes
from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.hindered import Hindered
from fencepost.checker.facts.obstacles import Request
from fencepost.checker.facts.taken import Taken
from fencepost.checker.history.history import Call, Op

BOUND, END = 100, 1000


def asks(begin, until, *, mode="exclusive", node="c9", type="fail", over=None, died=False):
    """An acquire that was not granted; with `type` None it is still open."""
    value = {"mode": mode}
    invoked = Op(begin, begin, 9, "invoke", "acquire", value, None, node)
    ends = until if until < FOREVER else END
    done = None if type is None else Op(ends, ends, 9, type, "acquire", value, None, node)
    over = begin if over is None else over
    open_until = until if type or died else FOREVER
    return Call(invoked, done), Request(begin, until, over, died, open_until)


def paused(node, start, end):
    nodes = frozenset({node})
    return Fault("f", "pause", [node], {}, start, end, True, True, impairs=nodes, links=())


def times(*asked, mode="exclusive", on=(), apart=0, end=END, one_by_one=False):
    clients = frozenset({"c1", "c2", "c9"})
    hindered = Hindered(on, clients, frozenset({"s1"}), False, one_by_one)
    return DeadTimes(
        "l", sorted(asked, key=lambda row: row[1].begin), mode, hindered, 100, apart, end
    )


def found(judged, *taken):
    return list(judged.find(taken, 0, "From the start"))


def grant(begin, over, at=None, mode="exclusive", lease=False, why="after it"):
    return Taken(begin, over, over if at is None else at, why, mode, lease)


def request(begin, over):
    return Taken(begin, over, over, "after a request")


def dead(since, limit, until=FOREVER, why="From the start", mode=""):
    return DeadTime("l", since, limit, until, why, mode)


@pytest.mark.parametrize(
    ("until", "mode", "told", "waited_s"),
    [
        (FOREVER, "", "1.000 s, but never was.", None),
        (2e18, "", "1.000 s, but was only after 2000000000.000 s.", 2e9),
        (FOREVER, "shared", "1.000 s, in shared mode, but never was.", None),
    ],
)
def test_a_dead_time_says_when_the_lock_was_due_and_for_whom(until, mode, told, waited_s):
    row = DeadTime("l", 0, 1e9, until, "From the start", mode).to_json()
    what = f"From the start: the lock should have been granted by {told}"
    rest = {"time_ns": 0, "valid": False, "waited_s": waited_s, "lock": "l"}
    assert row == {"what": what, **rest}


def test_a_lock_is_dead_from_the_bound_on_after_it_became_free():
    asked = asks(0, 400)
    assert found(times(asked), request(0, 200)) == [dead(200, 300, why="after a request")]
    assert found(times(asked), request(0, 200), grant(320, 330)) == [
        dead(200, 300, 320, "after a request")
    ]
    assert found(times(asked), request(0, 300)) == []


def test_a_mode_is_named_where_clients_asked_in_both():
    other = asks(900, 910, mode="shared")
    assert found(times(asks(0, 400), other)) == [dead(0, 100, mode="exclusive")]
    assert found(times(asks(0, 400, mode="shared"), mode="shared")) == [dead(0, 100)]


def test_requests_in_free_spans_add_up_only_where_another_mode_was_granted_in_between():
    asked = asks(200, 380)
    assert found(times(asked), request(280, 300)) == []
    other = asks(900, 910, mode="shared")
    assert found(times(asked, other), request(280, 300)) == [
        dead(300, 380, why="after a request", mode="exclusive")
    ]


@pytest.mark.parametrize(("last", "again"), [(290, []), (291, [291])])
def test_a_client_that_starves_again_is_counted_from_zero(last, again):
    """Free are 0-70, 80-150, 160-230, and all from 240 on. A span counts less a tenth of the
    bound."""
    taken = [grant(at, at + 10, mode="shared") for at in (70, 150, 230)]
    judged = times(asks(0, last), asks(900, 910, mode="shared"))
    assert [one.limit for one in found(judged, *taken)] == [150, *again]


def test_a_lone_client_that_asked_twice_in_vain_after_the_bound_shows_a_dead_lock():
    alone = asks(150, 151), asks(300, 301)
    assert found(times(*alone)) == [dead(0, 100)]
    assert found(times(*alone), request(10, 20)) == [dead(20, 120, why="after a request")]
    assert found(times(*alone, asks(30, 31)), grant(301, 302)) == [dead(0, 100, 301)]
    assert found(times(*alone), grant(300, 302)) == []


def test_a_request_that_may_hold_the_lock_leaves_no_client_alone():
    alone = asks(150, 151), asks(300, 301)
    assert found(times(asks(10, 20, type="info", over=310), *alone)) == []
    assert found(times(asks(10, 20, type="info", over=100), *alone)) == [dead(0, 100)]


def test_an_open_request_leaves_no_client_alone_unless_its_client_died():
    alone = asks(150, 151), asks(300, 301)
    assert found(times(asks(10, 20, type=None), *alone)) == []
    assert found(times(asks(10, 20, type=None, over=30, died=True), *alone)) == [dead(0, 100)]
    assert found(times(asks(10, 310, type=None, over=30, died=True), *alone)) != []


def test_requests_that_fail_together_ask_in_vain_as_one():
    once, again = (asks(150, 155), asks(152, 160)), (asks(300, 310), asks(305, 308))
    assert found(times(*once, *again)) == [dead(0, 100)]
    assert found(times(*once)) == []
    assert found(times(*once, *again, one_by_one=True)) == []
    assert found(times(*once, asks(300, 301))) == [dead(0, 100)]
    chain = asks(150, 155), asks(155, 160), asks(160, 165)
    assert found(times(*chain)) == []
    assert found(times(*chain, *again), grant(309, 320)) == []


@pytest.mark.parametrize("type", ["ok", "info", None])
def test_a_request_beside_it_that_may_be_granted_leaves_a_client_not_alone(type):
    over = 153 if type == "info" else None
    first = asks(150, 155), asks(152, 153, type=type, **({"over": over} if over else {}))
    assert found(times(*first, asks(300, 301))) == []
    assert found(times(asks(150, 155), asks(152, 153), asks(300, 301))) == [dead(0, 100)]


def test_of_requests_together_one_must_count():
    on = [paused("c1", 150, 400), paused("c2", 150, 151)]
    again = asks(500, 501, node="c2")
    hindered = asks(150, 155, node="c1"), asks(150, 160, node="c2")
    assert found(times(*hindered, again, on=on)) == []
    assert found(times(*hindered, again, on=on[:1])) == [dead(0, 100)]
    first = asks(150, 160, node="c2"), asks(152, 155, node="c1")
    assert found(times(*first, again, on=on[:1])) == [dead(0, 100)]


def test_a_lone_request_that_ends_with_an_error_was_in_vain():
    assert found(times(asks(150, 151), asks(300, 301, type="info"))) == [dead(0, 100)]


def test_a_lone_request_that_is_granted_was_not_in_vain():
    assert found(times(asks(150, 151), asks(300, 301, type="ok")), grant(301, 310)) == []


def test_where_clients_may_refuse_one_another_each_of_the_two_must_be_alone():
    again = asks(300, 310), asks(305, 308)
    assert found(times(asks(150, 151), *again, one_by_one=True)) == []
    assert found(times(asks(150, 151), *again)) == [dead(0, 100)]


def doubtful(judged, *taken):
    assert found(judged, *taken) == []
    return judged.doubtful


def test_where_clients_may_refuse_one_another_requests_at_the_same_time_leave_a_doubt():
    once, again = (asks(150, 155), asks(152, 160)), (asks(300, 310), asks(305, 308))
    late = asks(500, 510), asks(505, 508)
    each = {"one_by_one": True}
    assert doubtful(times(*once, *again, **each)) == 0
    assert doubtful(times(asks(150, 151), *again, **each)) == 0
    assert doubtful(times(*once, *again, **each), grant(10, 30)) == 30
    assert doubtful(times(*again, *late, **each), grant(10, 30), grant(220, 230)) == FOREVER
    assert doubtful(times(*again, *late, **each), grant(10, 30), grant(190, 199)) == 199
    both = times(*once, *again, asks(700, 705), asks(702, 703), *late, **each)
    assert doubtful(both, grant(320, 350)) == 0


def test_without_a_second_time_after_the_bound_there_is_no_doubt():
    once = asks(150, 155), asks(152, 160)
    again = asks(300, 310), asks(305, 308)
    each = {"one_by_one": True}
    assert doubtful(times(*once, **each)) == FOREVER
    assert doubtful(times(*once, asks(300, 310), asks(305, 308, type="ok"), **each)) == FOREVER
    assert doubtful(times(*once, *again, **each), grant(309, 320)) == FOREVER
    assert doubtful(times(asks(100, 155), asks(152, 160), *again, **each)) == FOREVER


def test_a_lock_that_is_dead_or_whose_servers_agree_is_not_in_doubt():
    alone = asks(150, 151), asks(300, 301)
    together = asks(500, 510), asks(505, 508)
    for each in (True, False):
        judged = times(*alone, *together, one_by_one=each)
        assert found(judged) == [dead(0, 100)]
        assert judged.doubtful == FOREVER


@pytest.mark.parametrize(("begin", "blamed"), [(160, False), (161, True)])
def test_requests_that_clocks_do_not_separate_were_open_at_the_same_time(begin, blamed):
    """While a request of unknown outcome is open, no other is in vain."""
    second = asks(begin, 165, type="info", over=166)
    judged = times(asks(150, 155), second, asks(300, 301), apart=5)
    assert bool(found(judged)) is blamed


@pytest.mark.parametrize(("over", "blamed"), [(145, False), (144, True)])
def test_clocks_must_show_that_a_request_before_them_is_over(over, blamed):
    before = asks(10, 20, type="info", over=over)
    judged = times(before, asks(100, 101), asks(150, 151), asks(300, 301), apart=5)
    assert bool(found(judged)) is blamed


def test_a_request_before_them_may_still_be_granted():
    unheard = asks(50, 130, type="info", over=150)
    together = asks(151, 155), asks(152, 160), asks(300, 301)
    assert found(times(unheard, *together)) == [dead(0, 100)]
    assert found(times(unheard, asks(150, 155), *together[1:])) == []


def test_a_request_counts_only_while_no_fault_hinders_its_client():
    on = [paused("c1", 150, 400)]
    alone = asks(150, 151, node="c1"), asks(410, 411, node="c1")
    assert found(times(*alone)) == [dead(0, 100)]
    assert found(times(*alone, on=on)) == []
    long = asks(100, 450, node="c1")
    assert found(times(long)) == [dead(0, 100)]
    assert found(times(long, on=on)) == []
    assert found(times(asks(100, 450, node="c2"), on=on)) == [dead(0, 100)]


def test_no_instant_joins_two_requests():
    """Neither a request that took no time, nor one that was hindered from its begin."""
    first, second = asks(0, 60), asks(76, 130)
    assert found(times(first, asks(68, 70), second)) == [dead(0, 100)]
    assert found(times(first, asks(68, 68), second)) == []
    hindered = asks(68, 76, node="c1")
    assert found(times(first, hindered, second, on=[paused("c1", 68, 76)])) == []


def served(judged, *taken):
    assert found(judged, *taken) == []
    return judged.served, judged.leases


@pytest.mark.parametrize(("at", "in_time"), [(150, 1), (151, 0)])
def test_a_grant_at_the_bound_is_in_time(at, in_time):
    assert served(times(asks(0, 1)), request(0, 50), grant(at, 160)) == (in_time, 0)


def test_grants_of_one_instant_are_one_service():
    """The lock was free for all of them, whatever their order."""
    both = asks(0, 1), asks(0, 1, mode="shared")
    shared, other = grant(50, 60, mode="shared"), grant(50, 60)
    assert served(times(*both), shared, other) == (1, 0)
    assert served(times(*both, mode="shared"), other, shared, shared) == (1, 0)


def test_a_grant_after_the_end_of_a_lease_counts_as_one():
    asked = asks(0, 1)
    leases = grant(0, 50, lease=True), grant(50, 80, lease=True), grant(90, 100, lease=True)
    assert served(times(asked), *leases) == (3, 2)
    assert served(times(asked), grant(0, 50), grant(60, 70)) == (2, 0)
    assert served(times(asked), grant(0, 50, 40, lease=True), grant(45, 70)) == (1, 1)
    assert served(times(asked), grant(0, 50, 48, lease=True), grant(45, 70)) == (1, 0)


def test_a_shared_grant_beside_a_shared_lease_does_not_follow_its_end():
    asked = asks(0, 1, mode="shared")
    rows = [grant(at, over, 20, "shared", True) for at, over in ((0, 50), (40, 60))]
    assert served(times(asked, mode="shared"), *rows) == (1, 0)
    rows[1] = grant(50, 60, mode="shared")
    assert served(times(asked, mode="shared"), *rows) == (2, 1)


def test_a_grant_that_had_expired_when_it_arrived_ends_the_lease_before_it_once():
    late = grant(50, 45)
    rows = grant(0, 50, 40, lease=True), late, grant(60, 70)
    assert served(times(asks(0, 1)), *rows) == (3, 1)
