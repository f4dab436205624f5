"""One Redis server, and one with a replica: their promises, and common mistakes."""

from __future__ import annotations

from typing import Any

from fencepost.workloads.scenarios.expectations import (
    DAMAGED,
    FENCED,
    FREED,
    KEPT,
    STUCK,
    TWICE,
    TWO_BELIEVE,
    UNLOCKED,
)
from fencepost.workloads.scenarios.runs import controls, explore
from fencepost.workloads.scenarios.scenario import (
    Do,
    Finish,
    Heal,
    Inject,
    Scenario,
    Step,
    TtlOver,
)
from fencepost.workloads.scenarios.schedules import (
    ONE,
    THREE,
    TWO,
    TWO_WRITES,
    both_stall,
    both_write,
    crash,
    holder_dies,
    late_release,
    no_lock_at_all,
    ops,
    pause_after_acquire,
    pause_at,
)
from fencepost.workloads.scenarios.sources import (
    COMMENTS,
    EVICTION,
    KLEPPMANN,
    OVERVIEW,
    SERVICE,
    WAIT,
)
from fencepost.workloads.scenarios.suite import Suite

SERVER, REPLICA = "redis-1", "redis-2"
_ONCE: dict[str, Any] = {"retries": 0}
_COUNTED = {**_ONCE, "token": "incr"}


def _restarted_empty() -> tuple[Step, ...]:
    return (
        Do(ONE, "acquire"),
        crash("crash", SERVER),
        Heal("crash"),
        Do(TWO, "acquire", again=True),
        *both_write(),
        Do(ONE, "release", expect="fail"),
        Do(TWO, "release"),
    )


def _server_down() -> tuple[Step, ...]:
    return (
        crash("crash", SERVER),
        Do(ONE, "acquire", expect="fail"),
        Do(TWO, "acquire", expect="fail"),
        Heal("crash"),
        *TWO_WRITES,
        Do(TWO, "release"),
    )


def _evicted(granted: str) -> tuple[Step, ...]:
    policy = "allkeys-lru" if granted == "ok" else "noeviction"
    limit = {"policy": policy, "words": f"{SERVER} runs out of memory under {policy}"}
    full = Inject("full", "memory", (SERVER,), limit)
    if granted == "ok":
        return (
            Do(ONE, "acquire"),
            full,
            Do(TWO, "acquire"),
            *both_write(),
            Heal("full"),
            Do(ONE, "release", expect="fail"),
            Do(TWO, "release"),
        )
    return (
        full,
        Do(ONE, "acquire", expect="fail"),
        Heal("full"),
        *TWO_WRITES,
        Do(TWO, "release"),
    )


def _failover(granted: str) -> tuple[Step, ...]:
    """The replica has not received the grant when it is promoted."""
    words = f"{REPLICA} is cut off from {SERVER}"
    lag = {"links": [[SERVER, REPLICA]], "words": words}
    promote = {"words": f"{SERVER} dies and {REPLICA} is promoted"}
    if granted == "ok":
        after: tuple[Step, ...] = (
            Do(TWO, "acquire", again=True),
            Do(TWO, "read"),
            Do(ONE, "read"),
            Do(TWO, "write"),
            Do(ONE, "write"),
            Do(ONE, "release", expect="fail"),
            Do(TWO, "release"),
            Heal("failover"),
        )
    else:
        # A client that waits for a replica is not granted the lock while there is none.
        after = (Heal("failover"), *TWO_WRITES, Do(TWO, "release"))
    return (
        Inject("lag", "partition", (SERVER, REPLICA), lag),
        Do(ONE, "acquire", expect=granted),
        Inject("failover", "failover", (SERVER, REPLICA), promote),
        Heal("lag"),
        *after,
    )


def _failover_sentinel() -> tuple[Step, ...]:
    """The partition is {1, 2} | {3, 4, 5}, and lasts until both have written."""
    one = ["redis-1", "redis-2", ONE]
    other = ["redis-3", "redis-4", "redis-5", TWO, THREE]
    links = [[near, far] for near in one for far in other if near != ONE or far not in (TWO, THREE)]
    words = f"redis-1, which is the primary, redis-2 and {ONE} are cut off from all others"
    return (
        Inject("split", "partition", (*one, *other), {"links": links, "words": words}),
        Do(ONE, "acquire"),
        Do(TWO, "acquire", again=True),
        *both_write(),
        Heal("split"),
        Do(TWO, "release"),
    )


def _released_in_two_steps() -> tuple[Step, ...]:
    point, when = "between-check-and-delete", "between its check and its delete"
    return (
        Do(ONE, "acquire"),
        *pause_at("pause", ONE, "release", point, when),
        Do(TWO, "acquire", again=True),
        Heal("pause"),
        Finish(ONE),
        Do(THREE, "acquire"),
        Do(TWO, "release", expect="any"),
    )


def _long_work() -> tuple[Step, ...]:
    return (
        *ops(ONE, "acquire", "read"),
        TtlOver(),
        Do(TWO, "acquire", expect="fail"),
        TtlOver(),
        *ops(ONE, "write", "release"),
        *ops(TWO, "acquire", "read", "write", "release"),
    )


def _never_again(first: tuple[Step, ...] = ()) -> tuple[Step, ...]:
    return (
        *first,
        Do(ONE, "acquire"),
        crash("crash", ONE),
        Do(TWO, "acquire", expect="fail"),
        Heal("crash"),
    )


def _always_yes() -> tuple[Step, ...]:
    return (
        Do(ONE, "acquire"),
        Do(TWO, "acquire"),
        *both_write(),
        Do(ONE, "release"),
        Do(TWO, "release"),
    )


_PAUSE = (
    "Client 1 pauses between its grant and its write, past its lease. Client 2 is granted the lock "
    "and writes; then client 1 wakes up and writes."
)
_STALL = (
    "Client 1 and then client 2 pause before their writes, past both their leases. They wake up in "
    "the order of their tokens, and both have read the same version."
)
_LATE = (
    "Client 1 releases after its lease has expired, while client 2 holds the lock; client 3 "
    "asks for it. "
)

_SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "pause-after-acquire", ("C4",), KLEPPMANN, _PAUSE, "none",
        pause_after_acquire("ok"), TWO_BELIEVE | DAMAGED, _ONCE,
    ),
    Scenario(
        "pause-after-acquire", ("C5", "A4"), KLEPPMANN, f"{_PAUSE} The fence refuses it.", "fenced",
        pause_after_acquire("fail"), TWO_BELIEVE | FENCED, _COUNTED,
    ),
    Scenario(
        "look-at-the-clock", ("C6",), KLEPPMANN,
        f"{_PAUSE} It had checked its lease right before: the pause came after the check.",
        "deadline", pause_after_acquire("ok"), TWO_BELIEVE | DAMAGED, _ONCE,
    ),
    Scenario(
        "watchdog", ("C26",), SERVICE,
        f"{_PAUSE} Its watchdog, which extends the lease, was paused with it.", "none",
        pause_after_acquire("ok"), TWO_BELIEVE | DAMAGED, {**_ONCE, "watchdog": True},
    ),
    Scenario(
        "watchdog-long-work", ("C26", "A2"), SERVICE,
        "Client 1 works for more than two TTLs, and its watchdog extends the lease meanwhile: "
        "client 2 is granted the lock when client 1 has released it.", "none",
        _long_work(), KEPT, {**_ONCE, "watchdog": True},
    ),
    Scenario(
        "holder-dies", ("C20", "P2"), OVERVIEW,
        "The holder crashes. Its key expires, and client 2 is granted the lock.", "none",
        holder_dies(), KEPT, _ONCE,
    ),
    Scenario(
        "server-down", ("C17",), OVERVIEW,
        "The only server crashes: no client is granted the lock until it is back.", "none",
        _server_down(), KEPT, _ONCE,
    ),
    Scenario(
        "restarted-empty", ("C2",), KLEPPMANN,
        "The server crashes before it has persisted client 1's key, and restarts at once: client 2 "
        "is granted the lock.", "none",
        _restarted_empty(), TWICE | DAMAGED, _ONCE, ttl_ms=10_000,
    ),
    Scenario(
        "failover", ("C16",), OVERVIEW,
        "The primary grants the lock to client 1 and dies before its replica has "
        "received it; the replica is promoted and grants the lock to client 2.", "none",
        _failover("ok"), TWICE | DAMAGED, _ONCE, ttl_ms=5000, lock="redis-replicated",
    ),
    Scenario(
        "failover-wait", ("C16",), WAIT,
        "The same, with a client that waits until the replica has its key: it is not granted the "
        "lock, since the replica never answers.", "none",
        _failover("fail"), KEPT, {**_ONCE, "wait": 1}, ttl_ms=5000, lock="redis-replicated",
    ),
    Scenario(
        "failover-sentinel", ("C16",), OVERVIEW,
        "Five servers behind Sentinel, of which the primary is cut off with one other "
        "and client 1: it grants the lock to client 1. The sentinels on the other side "
        "promote a server that has not received it, which grants the lock to client 2.", "none",
        _failover_sentinel(), TWICE | DAMAGED, {"wait_ms": 300}, ttl_ms=15_000,
        lock="redis-sentinel", causes=("split",),
    ),
    Scenario(
        "evicted", ("P1",), EVICTION,
        "The server runs out of memory under allkeys-lru and evicts client 1's key with "
        "others that were not used recently: client 2 is granted the lock.", "none",
        _evicted("ok"), TWICE | DAMAGED, _ONCE, ttl_ms=10_000,
    ),
    Scenario(
        "out-of-memory", ("P1",), EVICTION,
        "The same under noeviction: the server refuses every write, and so grants nothing.",
        "none", _evicted("fail"), KEPT, _ONCE,
    ),
    Scenario(
        "both-stall", ("C12",), COMMENTS,
        f"{_STALL} The fence accepts both writes, and the second overwrites the first.", "fenced",
        both_stall("ok"), TWO_BELIEVE | DAMAGED | FENCED, _COUNTED, causes=("pause-1", "pause-2"),
    ),
    Scenario(
        "both-stall", ("C12", "A9"), COMMENTS,
        f"{_STALL} The second one's paired token shows that the first was never "
        "released: its write is refused.", "paired",
        both_stall("fail"), TWO_BELIEVE | FENCED, {**_ONCE, "token": "paired"},
        causes=("pause-1", "pause-2"),
    ),
    Scenario(
        "optimistic", ("C13", "A8"), COMMENTS,
        "No lock at all: two clients read the same version and write; the resource compares "
        "versions, and the second reads again. The data is safe although every client believes "
        "it holds the lock.",
        "compare-and-set", no_lock_at_all(), UNLOCKED, lock="none", causes=("none",),
    ),
    Scenario(
        "optimistic-postgres", ("C13", "A8"), COMMENTS,
        "The same on PostgreSQL: one UPDATE with the version as its condition.",
        "compare-and-set", no_lock_at_all(), UNLOCKED, lock="none", causes=("none",),
        settings={"store": "postgres"},
    ),
    Scenario(
        "late-release", ("C14", "P3", "A1"), OVERVIEW,
        f"{_LATE}The script compares the owner: nothing happens.", "none",
        late_release("fail", "fail"),
        {"ownership": True, "lease_exclusion": True, "linearizable": True}, _ONCE,
    ),
    Scenario(
        "late-release-unchecked", ("C14", "P3"), OVERVIEW,
        f"{_LATE}DEL frees client 2's lock.", "none",
        late_release("ok", "ok"), FREED, _ONCE, lock="broken-no-owner-check", causes=("stolen",),
    ),
    Scenario(
        "late-release-two-steps", ("C14", "P3"), OVERVIEW,
        "Client 1 checks that the key is its own, pauses, and deletes it when it is client 2's.",
        "none", _released_in_two_steps(), FREED, _ONCE, lock="broken-check-then-delete",
        causes=("stolen",),
    ),
    Scenario(
        "no-ttl", ("C15", "P2"), OVERVIEW,
        "SET NX without a TTL: the holder dies, and the lock is never granted again.", "none",
        _never_again(), STUCK, _ONCE, lock="broken-no-ttl",
    ),
    Scenario(
        "endless-watchdog", ("A2",), SERVICE,
        "Client 3's watchdog continues after its release, and keeps the dead holder's lock alive.",
        "none", _never_again((Do(THREE, "acquire"), Do(THREE, "release"))),
        STUCK, _ONCE, lock="broken-endless-watchdog",
    ),
    Scenario(
        "always-yes", ("P1",), OVERVIEW, "It grants every request, with the same token.", "none",
        _always_yes(), TWICE | DAMAGED | {"fencing": False}, lock="broken-always-yes",
        causes=("none",),
    ),
)  # fmt: skip

SUITE = Suite(
    name="redis",
    what="one Redis, with and without a replica, and common mistakes",
    lock="redis",
    entries=(
        *controls(1000, {"token": "incr"}),
        *_SCENARIOS,
        explore(1000, ("partition", "pause", "clock", "kill")),
    ),
)
