"""Leases that expire by themselves: of released grants, and of grants whose answer was lost."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.checker.lincheck import Online, check, named
from fencepost.checker.lincheck.budget import Budget
from fencepost.checker.lincheck.verdict import check_numbered
from tests.checker.lincheck.lock_oracle import accepts


def queue(grants: int, ttl: int) -> list[dict[str, Any]]:
    """Return one client that acquires and releases the lock repeatedly."""
    ops = []
    for n in range(grants):
        lock = {"lock": "orders"}
        granted = lock | {"ttl": ttl, "hold": n, "token": n}
        ops += [
            ("invoke", "acquire", lock | {"ttl": ttl}),
            ("ok", "acquire", granted),
            ("invoke", "release", lock | {"hold": n}),
            ("ok", "release", lock | {"hold": n}),
        ]
    return [
        {"process": 0, "type": type, "f": f, "value": value, "time": time}
        for time, (type, f, value) in enumerate(ops)
    ]


def test_grants_that_may_expire_at_once_cost_no_more_the_more_there_are_of_them():
    model = named("lease-mutex", failed_release="ended")
    found = check_numbered(enumerate(queue(60, ttl=0)), model, Budget.starting_now(5.0, None))
    assert found.valid is True


def going_on(*ops: tuple[int, str, str, int], **asked: Any) -> list[dict[str, Any]]:
    """Return events (process, type, f, time) of a lock with leases of 10 ns.

    `asked` is in the value.
    """
    value = {"lock": "a", **asked}
    return [
        {
            "process": process,
            "type": type,
            "f": f,
            "value": value | ({} if f == "release" else {"ttl": 10}),
            "time": time,
        }
        for process, type, f, time in ops
    ]


UNHEARD = [(0, "invoke", "acquire", 0), (0, "info", "acquire", 2)]
OTHERS = [(1, "invoke", "acquire", 6), (1, "ok", "acquire", 11)]
EARLY = [(1, "invoke", "acquire", 6), (1, "ok", "acquire", 9)]
RELEASED = [(0, "invoke", "release", 12), (0, "ok", "release", 13)]
EXTENDED = [(0, "invoke", "extend", 4), (0, "ok", "extend", 5)]


@pytest.mark.parametrize("asked", [{}, {"hold": "h"}], ids=["no name", "a name of the client's"])
@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ([*UNHEARD, *RELEASED], True),
        ([*UNHEARD, *OTHERS, *RELEASED], True),
        ([*UNHEARD, *EARLY, *RELEASED], False),
        ([*UNHEARD, *EARLY], True),
        ([*UNHEARD, *OTHERS, *RELEASED, *RELEASED], False),
        ([*UNHEARD, *EXTENDED, *OTHERS], False),
        ([*UNHEARD, *EXTENDED, (1, "invoke", "acquire", 12), (1, "ok", "acquire", 14)], True),
        ([*OTHERS, *RELEASED], False),
    ],
)
def test_a_client_that_continues_may_release_a_grant_whose_answer_was_lost(ops, expected, asked):
    events = going_on(*ops, **asked)
    if asked:  # the other client's hold has another name
        events = [
            e if e["process"] == 0 else e | {"value": e["value"] | {"hold": "x"}} for e in events
        ]
    assert accepts("lease-mutex", events, "nothing") is expected
    assert check(events, "lease-mutex").valid is expected


def test_an_extend_that_was_late_may_shorten_the_next_lease_of_the_same_client():
    ops = [
        *[(0, type, "acquire", time) for type, time in (("invoke", 0), ("ok", 1))],
        *[(0, type, "extend", time) for type, time in (("invoke", 2), ("info", 3))],
        *[(0, type, "release", time) for type, time in (("invoke", 4), ("ok", 5))],
        *[(0, type, "acquire", time) for type, time in (("invoke", 6), ("ok", 7))],
        *[(1, type, "acquire", time) for type, time in (("invoke", 8), ("ok", 13))],
    ]
    events = going_on(*ops)
    assert check(events, "lease-mutex").valid is True
    assert check([e for e in events if e["f"] != "extend"], "lease-mutex").valid is False


def test_online_cannot_decide_when_a_client_continues_after_an_acquire_without_answer():
    for ops, expected in (
        ([*UNHEARD, *OTHERS, *RELEASED], "unknown"),
        ([*UNHEARD, *RELEASED], True),
        ([*UNHEARD, *EARLY], True),
        ([*OTHERS, *RELEASED], False),
    ):
        online = Online("lease-mutex")
        for event in going_on(*ops):
            online.feed(event)
        assert online.valid == expected
        if expected == "unknown":
            assert "only a check of the whole history can decide" in online.reason


def test_online_says_false_when_the_client_without_an_answer_stays_away():
    second = [(2, "invoke", "acquire", 14), (2, "ok", "acquire", 15)]
    online = Online("lease-mutex")
    for event in going_on(*UNHEARD, *OTHERS, *second):
        online.feed(event)
    assert online.valid is False
    assert online.reason == "event 6 cannot be placed"


@pytest.mark.parametrize(("granted", "expected"), [(9, False), (10, True)])
def test_an_event_without_a_time_ends_no_lease(granted, expected):
    events = going_on(
        (0, "invoke", "acquire", 0),
        (0, "ok", "acquire", 1),
        (1, "invoke", "release", 4),
        (1, "info", "release", 5),
        (2, "invoke", "acquire", 6),
        (2, "ok", "acquire", granted),
    )
    for event in events:
        if event["f"] == "release":
            del event["time"]
    assert check(events, "lease-mutex").valid is expected


def leased(*ops: tuple[int, str, str, int, int]) -> list[dict[str, Any]]:
    """Return events (process, type, f, time, ttl) of a lock whose grants have no names."""
    return [
        {"process": p, "type": type, "f": f, "value": {"lock": "a", "ttl": ttl}, "time": time}
        for p, type, f, time, ttl in ops
    ]


AGAIN = [
    *[(1, "invoke", "acquire", 0, 3), (1, "ok", "acquire", 1, 3)],
    *[(0, "invoke", "acquire", 2, 0), (0, "ok", "acquire", 3, 0)],
    *[(1, "invoke", "release", 3, 0), (1, "ok", "release", 3, 0)],
]


@pytest.mark.parametrize(("ttl", "valid"), [(0, True), (1, True), (2, False)])
def test_two_leases_of_a_client_that_end_at_one_time_end_twice(ttl, valid):
    """The first had expired and was released; the second ends when the first did."""
    events = leased(
        *AGAIN,
        *[(1, "invoke", "acquire", 3, ttl), (1, "ok", "acquire", 4, ttl)],
        *[(2, "invoke", "acquire", 4, 5), (2, "ok", "acquire", 4, 5)],
    )
    assert accepts("lease-mutex", events, "nothing") is valid
    assert check(events, named("lease-mutex")).valid is valid


@pytest.mark.parametrize(("again", "valid"), [(1, True), (2, False)])
def test_a_release_settles_one_of_two_leases_that_end_at_one_time(again, valid):
    """The answer of the first was lost; the second was granted after the release of the first."""
    late = [(2, "invoke", "acquire", 9, 9), (2, "ok", "acquire", 10, 9)]
    once = [(1, "invoke", "release", 11, 0), (1, "ok", "release", 12, 0)]
    events = leased(
        *[(1, "invoke", "acquire", 0, 3), (1, "info", "acquire", 1, 3)],
        *[(1, "invoke", "acquire", 1, 2), (1, "ok", "acquire", 2, 2)],
        *[(0, "invoke", "acquire", 4, 9), (0, "ok", "acquire", 5, 9)],
        *[(1, "invoke", "release", 6, 0), (1, "ok", "release", 7, 0)],
        *[(0, "invoke", "release", 7, 0), (0, "ok", "release", 8, 0)],
        *late,
        *(once * again),
    )
    assert accepts("lease-mutex", events, "nothing") is valid
    assert check(events, named("lease-mutex")).valid is valid


@pytest.mark.parametrize(
    ("asked_ns", "token", "why"),
    [
        (20, 1, "1 can't be granted token 1: 5 was granted before"),
        (5, 6, "1 can't acquire: 0 holds it and can't expire before 0.000000 s"),
    ],
)
def test_a_lease_that_may_have_ended_is_not_the_reason(asked_ns, token, why):
    grants = [(0, 0, 5), (1, asked_ns, token)]
    events = [
        {"process": process, "type": type, "f": "acquire", "time": time,
         "value": {"ttl": 10} | ({"token": token} if type == "ok" else {})}
        for process, begun, token in grants
        for type, time in (("invoke", begun), ("ok", begun + 1))
    ]  # fmt: skip
    assert check(events, "lease-mutex").evidence().why == why
