"""A run in which no client waited long is not one in which `liveness` blames the lock."""

from __future__ import annotations

import os
from random import Random

import pytest

from fencepost.checker.history.history import History, Op
from fencepost.checker.liveness import liveness
from fencepost.hunt.search.long_waits import waited_long
from fencepost.hunt.search.prefilter import signs
from tests.oracles.drawn import in_order
from tests.oracles.liveness_drawn import draw

BOUND = 1000
HISTORIES = 20 * int(os.environ.get("FENCEPOST_SCHEDULES", "500"))


def acquire(begin, end, type, process=0, mode=None):
    """The rows of an acquire; without an outcome if `end` is None."""
    value = {"deadline": None, "token": None, "hold": f"{process}-{begin}"}
    value |= {"mode": mode} if mode else {}
    node = f"client-{process % 10}"
    rows = [(begin, process, "invoke", "acquire", value, None, node, 0)]
    return rows if end is None else [*rows, (end, process, type, "acquire", value, None, node, 0)]


def waited(*acquires, end=None):
    rows = sorted((row for one in acquires for row in one), key=lambda row: row[0])
    if end is not None:
        rows.append((end, 99, "ok", "close", {}, None, "client-9", 0))
    return waited_long(rows, BOUND)


@pytest.mark.parametrize(("end", "long"), [(1100, False), (1101, True)])
def test_clients_that_asked_for_no_longer_than_the_bound_did_not_wait_long(end, long):
    assert waited(acquire(0, 100, "ok"), acquire(50, end, "ok", 1)) is long


def test_neither_did_clients_that_asked_only_while_the_lock_was_granted_again_and_again():
    grants = [acquire(n, n, "ok", 1) for n in range(0, 4000, 900)]
    assert not waited(acquire(0, 3500, "ok"), *grants)


@pytest.mark.parametrize(("pause", "long"), [(100, True), (101, False)])
def test_a_short_pause_does_not_end_a_wait(pause, long):
    first, then = acquire(100, 600, "info"), acquire(600 + pause, 1150, "ok", 10)
    assert waited(acquire(0, 0, "ok", 1), first, then) is long


def test_a_request_without_an_outcome_lasts_until_the_end():
    assert not waited(acquire(0, None, ""), end=1000)
    assert waited(acquire(0, None, ""), end=1001)


@pytest.mark.parametrize(
    ("begin", "ends", "long"),
    [
        (1001, ("info", "info"), True),
        (1000, ("info", "info"), False),
        (1001, ("info", "ok"), False),
        (1001, ("fail", "info"), True),
    ],
)
def test_two_requests_in_vain_after_the_bound_are_a_long_wait(begin, ends, long):
    first, second = acquire(begin, begin + 10, ends[0]), acquire(1500, 1510, ends[1], 10)
    assert waited(first, second, end=1600) is long


@pytest.mark.parametrize("kind", ["fail", "info"])
def test_a_client_that_is_refused_between_grants_to_others_waited_long(kind):
    acquires = []
    for begin in range(0, 3000, 600):
        acquires += [acquire(begin, begin + 400, kind), acquire(begin + 450, begin + 450, "ok", 1)]
    assert waited(*acquires[:6]) is False
    assert waited(*acquires) is (kind == "fail")


def test_its_own_grant_ends_its_wait():
    refused = [acquire(begin, begin + 400, "fail") for begin in range(0, 3000, 500)]
    grants = [acquire(begin, begin, "ok") for begin in range(450, 3000, 500)]
    assert not waited(*refused, *grants)


def test_a_run_without_events_has_no_wait():
    assert not waited_long([], BOUND)


def test_clients_that_ask_in_several_modes_are_left_to_the_judge():
    assert waited(acquire(0, 0, "ok", mode="shared"), acquire(1, 2, "ok", 1), end=3)


def test_a_lock_that_promises_an_order_is_judged_after_any_time_without_a_grant():
    rows = [*acquire(0, 0, "ok"), *acquire(2000, 2000, "ok")]
    assert signs(rows, True, BOUND, frozenset({"minority"})) == {"granted-beside", "granted-early"}
    assert "waited" in signs(rows, True, BOUND, frozenset({"fifo"}))


def _of_one_lock(ops: list[Op]) -> list[Op]:
    """Return the ops without those of other locks than one, because a hunt has only one."""
    asked: dict[int | str, str] = {}
    mine = []
    for op in ops:
        lock = op.value.get("lock")
        if op.type == "invoke":
            asked[op.process] = lock
        elif op.f not in ("lost", "renewed"):
            lock = asked.get(op.process, lock)
        if lock in (None, "l0"):
            mine.append(op)
    return in_order(mine)


@pytest.mark.oracle
def test_the_judge_blames_no_lock_whose_clients_did_not_wait_long():
    random, blamed, passed = Random("long waits"), 0, 0
    for number in range(HISTORIES):
        ops, test = draw(random)
        ops = _of_one_lock(ops)
        test = {name: value for name, value in test.items() if name != "clocks"}
        test["promises"] = {"minority": "minority" in test["promises"]}
        if not ops:
            continue
        rows = [(o.time, o.process, o.type, o.f, o.value, None, o.node, 0) for o in ops]
        long = waited_long(rows, round(test["liveness_bound_s"] * 1e9))
        wrong = liveness(History(ops), test).valid is False
        assert long or not wrong, (number, ops, test)
        blamed += wrong
        passed += not long
    assert blamed > HISTORIES / 100 and passed > HISTORIES / 20
