"""What the libraries do that their users would not expect: each in a schedule of its own.

The expectations are what these versions do (docs/libraries.md), so that a version that does
better is noticed. Their issues are named where their makers know of it.
"""

from __future__ import annotations

from workloads.scenarios.scenario import Begin, Do, Finish, Heal, Inject, Scenario, Step, TtlOver
from workloads.scenarios.schedules import (
    DAMAGED,
    KEPT,
    ONE,
    THREE,
    TWICE,
    TWO,
    TWO_BELIEVE,
    crash,
    cut,
    pause_after_acquire,
)

REDIS = [f"redis-{n}" for n in range(1, 6)]
ZOOKEEPER = [f"zookeeper-{n}" for n in range(1, 4)]

SEEN = "docs/libraries.md"
WORK: tuple[Step, ...] = (Do(TWO, "read"), Do(TWO, "write"), Do(TWO, "release"))


def hold_replies(server: str, client: str) -> Inject:
    return Inject(
        f"replies-{server}",
        "hold",
        (server, client),
        {
            "source": server,
            "to": client,
            "words": f"what {server} answers {client} is held back in the network",
        },
    )


def _nobody_for(turns: int) -> tuple[Step, ...]:
    """Both ask in vain, so many TTLs long."""
    asked = (Do(ONE, "acquire", expect="failing"), Do(TWO, "acquire", expect="failing"), TtlOver())
    return asked * turns


_SLOW = REDIS[:3]
_BLIND = KEPT | {"lease_exclusion": False, "mutual_exclusion": False} | DAMAGED

SCENARIOS = (
    Scenario(
        "redis-py-reply-lost", "L1", SEEN,
        "The reply to client 1's SET is lost. redis-py's client sends it again by itself, finds "
        "its own key, and acquire returns False: until the lease ends nobody has the lock, and "
        "nobody gets it.",
        "none",
        (
            Do(ONE, "acquire"),
            Do(ONE, "release"),
            hold_replies("redis-1", ONE),
            Begin(ONE, "acquire"),
            TtlOver(),
            Do(TWO, "acquire", expect="any"),
            Heal("replies-redis-1"),
            Finish(ONE, expect="any"),
        ),
        KEPT, {"node_timeout_ms": 200, "wait_ms": 500}, lock="redis-py",
    ),
    Scenario(
        "redlock-py-minority-down", "L2", "redlock-py 1.0.8, Redlock.lock",
        "One of five servers crashes. redlock-py has four of five, raises the error of the fifth "
        "all the same, and leaves the four keys behind: nobody is granted the lock while the "
        "server is down.",
        "none",
        (
            Do(ONE, "acquire"),
            Do(ONE, "release"),
            crash("crash", REDIS[4]),
            *_nobody_for(5),
            Heal("crash"),
        ),
        KEPT | {"liveness": False}, lock="redlock-py",
    ),
    Scenario(
        "node-redlock-extend-unlocks", "L3", "redlock 4.2.0 (npm), Redlock.prototype._lock",
        "The answers of three servers to client 1 are held back while it extends its lease. It "
        "finds no quorum, and unlocks the lock that it holds, on every server: client 2 is granted "
        "it in the middle of client 1's lease.",
        "none",
        (
            Do(ONE, "acquire"),
            *(hold_replies(server, ONE) for server in _SLOW),
            Begin(ONE, "extend"),
            Do(TWO, "acquire", again=True),
            *WORK,
            *(Heal(f"replies-{server}") for server in _SLOW),
            Finish(ONE, expect="fail"),
        ),
        TWICE, lock="node-redlock", ttl_ms=8000,
    ),
    Scenario(
        "kazoo-leaks-a-contender", "L4", "kazoo issue 732",
        "Client 2 waits for its turn, and gives up while it is cut off from all servers: kazoo can "
        "not remove its znode then, forgets it, and the session lives on. The znode comes to its "
        "turn with nobody there, and nobody is granted the lock any more.",
        "none",
        (
            Do(TWO, "acquire"),
            Do(TWO, "release"),
            Do(ONE, "acquire"),
            Begin(TWO, "acquire"),
            cut("cut", TWO, ZOOKEEPER),
            Finish(TWO, expect="fail"),
            Heal("cut"),
            Do(ONE, "release"),
            Do(THREE, "acquire", expect="fail"),
        ),
        KEPT | {"liveness": False}, {"wait_ms": 2000}, lock="kazoo", ttl_ms=9000,
    ),
    Scenario(
        "python-redis-lock-lost-in-silence", "L5", "python-redis-lock 4.0.1, Lock._lock_renewer",
        "Client 1 pauses past its lease and client 2 is granted the lock. The thread of client 1 "
        "that renews the lease finds that it is gone and ends; nobody tells client 1, which "
        "believes in its hold until it releases it.",
        "none", pause_after_acquire("ok"), _BLIND, {"auto_renewal": True},
        lock="python-redis-lock", ttl_ms=2000,
    ),
    *(
        Scenario(
            f"{lock}-paused", "C4", "Martin Kleppmann, How to do distributed locking, 2016",
            "Client 1 pauses between its grant and its write, until its session is over. The "
            "library says nothing of how long a session may be believed in, and tells of its end "
            "after the write.",
            "none", pause_after_acquire("ok", release), _BLIND, lock=lock, ttl_ms=2000,
        )
        for lock, release in (("kazoo", "any"), ("curator", "any"))
    ),
    *(
        Scenario(
            f"{lock}-paused", "C4", "Martin Kleppmann, How to do distributed locking, 2016",
            "Client 1 pauses between its grant and its write, until its lease is over; client 2 is "
            "granted the lock and writes, then client 1's write arrives.",
            "none", pause_after_acquire("ok", release), TWO_BELIEVE | DAMAGED, lock=lock,
            ttl_ms=2000,
        )
        for lock, release in (
            ("redis-py", "fail"),
            ("pottery", "fail"),
            ("redlock-py", "ok"),
            ("python-redis-lock", "fail"),
            ("aetcd", "fail"),
            ("etcd3gw", "fail"),
            ("node-redlock", "fail"),
        )
    ),
)  # fmt: skip
