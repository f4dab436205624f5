"""What the libraries do that their users would not expect: each in a schedule of its own.

The expectations are what these versions do (docs/libraries.md), so that a version that does
better is noticed. Their issues are named where their makers know of it.
"""

from __future__ import annotations

from fencepost.workloads.scenarios.expectations import DAMAGED, KEPT, TWICE, TWO_BELIEVE
from fencepost.workloads.scenarios.scenario import (
    Begin,
    Do,
    Finish,
    Heal,
    Inject,
    Scenario,
    Step,
    TtlOver,
)
from fencepost.workloads.scenarios.schedules import ONE, TWO, crash, pause_after_acquire
from fencepost.workloads.scenarios.sources import KLEPPMANN, SEEN
from fencepost.workloads.scenarios.suite import Suite

REDIS = [f"redis-{n}" for n in range(1, 6)]
ZOOKEEPER = [f"zookeeper-{n}" for n in range(1, 4)]


def pause(server: str) -> Inject:
    return Inject(f"pause-{server}", "pause", (server,), {"words": f"{server} is paused"})


def _turn(client: str) -> tuple[Step, ...]:
    return tuple(Do(client, f) for f in ("acquire", "read", "write", "release"))


def _nobody_for(turns: int) -> tuple[Step, ...]:
    """Both ask in vain, so many TTLs long."""
    asked = (Do(ONE, "acquire", expect="failing"), Do(TWO, "acquire", expect="failing"), TtlOver())
    return asked * turns


_SLOW = REDIS[:3]
_BLIND = KEPT | {"lease_exclusion": False, "mutual_exclusion": False} | DAMAGED

_SCENARIOS = (
    Scenario(
        "redis-py-reply-lost", "L1", SEEN,
        "The server answers client 1's SET too late. redis-py's client sends it again by itself, "
        "finds its own key, and acquire returns False: until the lease ends nobody has the lock, "
        "and nobody gets it.",
        "none",
        (
            *_turn(ONE),
            pause(REDIS[0]),
            Begin(ONE, "acquire"),
            TtlOver(),
            Heal(f"pause-{REDIS[0]}"),
            Finish(ONE, expect="fail"),
            Do(TWO, "acquire", expect="fail"),
        ),
        KEPT | {"liveness": False}, {"node_timeout_ms": 500, "wait_ms": 500}, lock="redis-py",
        ttl_ms=2000,
    ),
    Scenario(
        "redlock-py-minority-down", "L2", "redlock-py 1.0.8, Redlock.lock",
        "One of five servers crashes. redlock-py has four of five, raises the error of the fifth "
        "all the same, and leaves the four keys behind: nobody is granted the lock while the "
        "server is down.",
        "none",
        (
            *_turn(ONE),
            crash("crash", REDIS[4]),
            *_nobody_for(5),
            Heal("crash"),
        ),
        KEPT | {"liveness": False}, lock="redlock-py",
    ),
    Scenario(
        "node-redlock-extend-unlocks", "L3", "redlock 4.2.0 (npm), Redlock.prototype._lock",
        "Three servers are paused while client 1 extends its lease. It finds no quorum, and "
        "unlocks the lock that it holds, on every server: client 2 is granted it in the middle of "
        "client 1's lease.",
        "none",
        (
            # Its scripts are then known to the servers.
            *(Do(ONE, f) for f in ("acquire", "extend", "release")),
            Do(ONE, "acquire"),
            *(pause(server) for server in _SLOW),
            Do(ONE, "extend", expect="fail"),
            *(Heal(f"pause-{server}") for server in _SLOW),
            Do(TWO, "acquire", again=True),
            Do(TWO, "read"),
            Do(TWO, "write"),
            Do(TWO, "release"),
        ),
        TWICE, lock="node-redlock", ttl_ms=8000, causes=("extend-failed",),
    ),
    Scenario(
        "kazoo-waits-past-its-timeout", "L4", "kazoo 2.11.0, Lock.acquire",
        "Client 2 asks with a timeout of 1 s, and two of three servers crash. What kazoo asks for "
        "while it has no connection waits for one without a limit: acquire returns when the "
        "servers are back, some 9 s later.",
        "none",
        (
            *_turn(TWO),
            Do(ONE, "acquire"),
            Begin(TWO, "acquire"),
            *(crash(f"crash-{server}", server) for server in ZOOKEEPER[:2]),
            TtlOver(),
            TtlOver(),
            *(Heal(f"crash-{server}") for server in ZOOKEEPER[:2]),
            Finish(TWO, expect="any"),
            # Its session may have lived through the outage, if it connected again in time.
            Do(ONE, "release", expect="any"),
        ),
        KEPT, {"wait_ms": 1000}, lock="kazoo", ttl_ms=2000,
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
            f"{lock}-paused", "C4", KLEPPMANN,
            "Client 1 pauses between its grant and its write, until its session is over. The "
            "library says nothing of how long a session may be believed in, and tells of its end "
            "after the write.",
            "none", pause_after_acquire("ok", release), _BLIND, lock=lock, ttl_ms=2000,
        )
        for lock, release in (("kazoo", "any"), ("curator", "any"))
    ),
    *(
        Scenario(
            f"{lock}-paused", "C4", KLEPPMANN,
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

SUITE = Suite(
    name="libraries",
    what="what the libraries that people install do when it matters",
    lock="",
    entries=_SCENARIOS,
)
