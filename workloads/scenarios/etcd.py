"""etcd's locks: the recipe, the server's own lock API with its known defect, Chubby's remedies."""

from __future__ import annotations

from fencepost.workloads.scenarios.consensus import of_a_cluster
from fencepost.workloads.scenarios.expectations import DAMAGED, KEPT, TWO_BELIEVE
from fencepost.workloads.scenarios.runs import clocks, controls, explore, queue
from fencepost.workloads.scenarios.scenario import Begin, Do, Finish, Heal, Scenario, Step, TtlOver
from fencepost.workloads.scenarios.schedules import (
    ONE,
    THREE,
    TWO,
    TWO_WRITES,
    ops,
    pause_after_acquire,
    pause_at,
    pause_before_write,
)
from fencepost.workloads.scenarios.sources import BURROWS, JEPSEN, OVERVIEW
from fencepost.workloads.scenarios.suite import Suite

SERVERS = [f"etcd-{n}" for n in (1, 2, 3)]


def _expired_waiter(answer: str) -> tuple[Step, ...]:
    """Client 2's lease expires while the server lets it wait behind client 1."""
    point, when = "replies-in-flight", "while it waits for the lock"
    after: tuple[Step, ...] = (Do(TWO, "release", expect="any"),) if answer == "ok" else ()
    return (
        Do(ONE, "acquire"),
        *pause_at("pause", TWO, "acquire", point, when),
        TtlOver(),
        Begin(THREE, "acquire"),
        Heal("pause"),
        # Long enough for client 2 to notice by itself that its lease is gone.
        TtlOver(),
        Do(ONE, "release"),
        Finish(TWO, expect=answer),
        Finish(THREE),
        *after,
        Do(THREE, "release"),
    )


def _given_up() -> tuple[Step, ...]:
    return (
        Do(ONE, "acquire"),
        Do(TWO, "acquire", expect="fail"),
        *ops(ONE, "read", "write", "release"),
        *ops(THREE, "acquire", "read", "write", "release"),
    )


def _within_the_delay() -> tuple[Step, ...]:
    return (
        *ops(ONE, "acquire", "read"),
        *pause_before_write("pause", ONE),
        TtlOver(),
        Do(TWO, "acquire", expect="fail"),
        Heal("pause"),
        Finish(ONE),
        Do(ONE, "release", expect="fail"),
        *TWO_WRITES,
        Do(TWO, "release"),
    )


_PAUSE = (
    "Client 1 pauses between its grant and its write until its lease has expired. Client 2 is "
    "granted the lock and writes; then client 1 wakes up and writes. "
)
_WAITER = (
    "Client 2's lease expires while it waits for client 1, and it notices that; client 3 waits "
    "behind it. Client 1 releases. "
)
_ONCE = {"retries": 0}

_SCENARIOS: tuple[Scenario, ...] = (
    *of_a_cluster(SERVERS, "lease"),
    Scenario(
        "transaction", ("A6",), JEPSEN,
        (
            f"{_PAUSE}Data and lock are in one store, which writes only if the lock's key still "
            "exists."
        ),
        "transaction", pause_after_acquire("fail"), TWO_BELIEVE, ttl_ms=2000,
    ),
    Scenario(
        "given-up-wait", ("A6",), OVERVIEW,
        "Client 2 waits behind client 1, gives up in time, and leaves no key in the queue: when "
        "client 1 releases, client 3 is granted the lock at its first try.",
        "none", _given_up(), KEPT, {"wait_ms": 1000}, ttl_ms=2000,
    ),
    Scenario(
        "check-sequencer", ("C23", "A7"), BURROWS,
        f"{_PAUSE}The resource asks the lock service, which answers that the hold has ended.",
        "check-sequencer", pause_after_acquire("fail"), TWO_BELIEVE, _ONCE, ttl_ms=2000,
        lock="chubby",
    ),
    Scenario(
        "lock-delay", ("C22", "A7"), BURROWS,
        "Client 1 pauses past its lease, for less than the lock-delay: the lock is not granted "
        "meanwhile, and its late write does no harm, without any token.",
        "none", _within_the_delay(), KEPT,
        # After a lease the lock stays taken for the delay, in addition to the usual bound of 5 s.
        {**_ONCE, "lock_delay_ms": 3000}, ttl_ms=2000, lock="chubby",
        settings={"liveness_bound_s": 8.0},
    ),
    Scenario(
        "lock-delay-exceeded", ("C22", "A7"), BURROWS,
        f"{_PAUSE}It paused for longer than the lock-delay of half a second.",
        "none", pause_after_acquire("ok"), TWO_BELIEVE | DAMAGED,
        {**_ONCE, "lock_delay_ms": 500}, ttl_ms=2000, lock="chubby",
    ),
    Scenario(
        "expired-waiter-3.4", ("etcd 11456",), JEPSEN,
        f"{_WAITER}etcd 3.4 grants client 2 the lock on a lease that has expired: clients 2 and 3 "
        "both hold it.",
        "none", _expired_waiter("ok"),
        {"linearizable": False, "mutual_exclusion": False}, ttl_ms=2000, lock="etcd-lock-api",
        settings={"server": {"etcd": "3.4"}},
    ),
    Scenario(
        "expired-waiter-3.5", ("etcd 11456",), JEPSEN,
        f"{_WAITER}etcd 3.5 refuses client 2: its session has expired.",
        "none", _expired_waiter("fail"),
        {"linearizable": True, "mutual_exclusion": True, "lease_exclusion": True}, ttl_ms=2000,
        lock="etcd-lock-api", settings={"server": {"etcd": "3.5"}},
    ),
)  # fmt: skip

SUITE = Suite(
    name="etcd",
    what="etcd: the recipe, the lock API with its known defect, Chubby's remedies",
    lock="etcd",
    entries=(*controls(2000, {}), queue("A6"), clocks(2000), *_SCENARIOS, explore(2000)),
)
