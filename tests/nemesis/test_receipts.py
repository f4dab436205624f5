"""A fault has a receipt if it took effect, and none otherwise."""

from __future__ import annotations

import pytest

from fencepost.checker import receipts
from tests.nemesis.receipt_faults import (
    CRASHES,
    CUT,
    DELAYED,
    JUMP,
    KILL_CLIENT,
    KILL_SERVER,
    LATE,
    LEFT,
    PAUSE_CLIENT,
    PAUSE_SERVER,
    PAUSES,
    REJECTED,
    REPLIES,
    REQUESTS,
)

CASES = [
    (CUT, "rules"),
    (PAUSE_SERVER, "signals"),
    (PAUSE_CLIENT, "signals"),
    (JUMP, "clock"),
    (KILL_SERVER, "signals"),
    (KILL_CLIENT, "signals"),
    (DELAYED, "rules"),
    (REJECTED, "rules"),
    (REQUESTS, "rules"),
    (REPLIES, "rules"),
    (CRASHES, "signals"),
    (PAUSES, "signals"),
    (LEFT, "signals"),
    (LATE, "tc"),
    (LATE, "sch_netem"),
]
NAMES = [
    "partition",
    "pause",
    "pause-client",
    "clock",
    "kill",
    "kill-client",
    "delay",
    "reject",
    "requests",
    "replies",
    "kill-many",
    "pause-many",
    "membership",
    "packet",
    "packet-unsupported",
]
every_family = pytest.mark.parametrize(("fault", "deafness"), CASES, ids=NAMES)


@every_family
def test_injection_and_heal_of_an_effective_fault_are_both_proved(
    director, recorded, fault, deafness
):
    assert director.inject(fault).proved
    assert [one.name for one in director.on] == [fault.name]
    assert director.heal(fault.name).proved
    assert director.on == []
    assert [(op.type, op.value["phase"]) for op in recorded.ops] == [
        ("invoke", "start"),
        ("ok", "start"),
        ("invoke", "end"),
        ("ok", "end"),
    ]
    assert receipts.check(recorded.history(), {}).valid is True


@every_family
def test_a_fault_without_effect_has_no_receipt_and_the_run_is_unknown(
    director, site, recorded, fault, deafness
):
    site.deaf.add(deafness)
    receipt = director.inject(fault)
    site.deaf.clear()
    director.heal(fault.name)
    assert receipt.proved is False
    done = recorded.ops[1]
    assert (done.type, done.error) == ("info", ["unproved", receipt.how])
    assert done.value["receipt"]["proved"] is False
    verdict = receipts.check(recorded.history(), {})
    assert verdict.valid == "unknown"
    what = verdict.evidence[0]["what"]
    assert what.endswith(
        f"no receipt; nothing proves that it took effect. Reason: {receipt.how.rstrip('.')}."
    )
    assert verdict.summary == f"1 of 1 faults lack a receipt ({receipt.how.rstrip('.')})."


@pytest.mark.parametrize(
    ("fault", "deafness"),
    [
        (PAUSE_SERVER, "signals"),
        (PAUSE_CLIENT, "signals"),
        (JUMP, "clock"),
        (KILL_SERVER, "restart"),
        (LEFT, "restart"),
    ],
)
def test_a_fault_that_stays_on_is_not_called_healed_and_the_run_is_unknown(
    director, site, recorded, fault, deafness
):
    assert director.inject(fault).proved
    site.deaf.add(deafness)
    assert director.heal(fault.name).proved is False
    assert receipts.check(recorded.history(), {}).valid == "unknown"


def test_a_clock_s_receipt_is_the_offset_that_the_server_shows(director, site):
    receipt = director.inject(JUMP)
    low_s, high_s = receipt.data["offset_bounds_s"]["redis-3"]["wall"]
    assert low_s <= -5.5 <= high_s < low_s + 0.001
    assert receipt.how == "wall clock set to -5.500 s; redis-3, wall: -5.500 s (±0.000)"
    director.heal("c")
    assert site.nodes["redis-3"].clocks.file_s == 0
