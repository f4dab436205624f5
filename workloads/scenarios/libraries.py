"""Surprising behaviour of the libraries, each in its own schedule.

The expectations are the behaviour of these versions (docs/libraries.md), so that an improved
version is noticed. Issues are named if the maintainers know of the problem.
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
from fencepost.workloads.scenarios.schedules import (
    ONE,
    TWO,
    TWO_WRITES,
    crash,
    ops,
    pause_after_acquire,
)
from fencepost.workloads.scenarios.sources import KLEPPMANN, SEEN
from fencepost.workloads.scenarios.suite import Suite

REDIS = [f"redis-{n}" for n in range(1, 6)]
ZOOKEEPER = [f"zookeeper-{n}" for n in range(1, 4)]


def pause(server: str) -> Inject:
    return Inject(f"pause-{server}", "pause", (server,), {"words": f"{server} is paused"})


_TURN = ("acquire", "read", "write", "release")


def _nobody_for(turns: int) -> tuple[Step, ...]:
    """Both clients ask in vain, for this number of TTLs."""
    asked = (Do(ONE, "acquire", expect="failing"), Do(TWO, "acquire", expect="failing"), TtlOver())
    return asked * turns


_SLOW = REDIS[:3]
_BLIND = KEPT | {"lease_exclusion": False, "mutual_exclusion": False} | DAMAGED

_SCENARIOS = (
    Scenario(
        "redis-py-reply-lost", ("L1",), SEEN,
        "The server answers client 1's SET too late. redis-py's client retries by itself, finds "
        "its own key, and acquire returns False: until the lease expires no client holds the "
        "lock or can acquire it.",
        "none",
        (
            *ops(ONE, *_TURN),
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
        "redlock-py-minority-down", ("L2",), "redlock-py 1.0.8, Redlock.lock",
        "One of five servers crashes. redlock-py has four of five, but raises the fifth's error "
        "and leaves the four keys behind: no client is granted the lock while the server is down.",
        "none",
        (
            *ops(ONE, *_TURN),
            crash("crash", REDIS[4]),
            *_nobody_for(5),
            Heal("crash"),
        ),
        KEPT | {"liveness": False}, lock="redlock-py",
    ),
    Scenario(
        "node-redlock-extend-unlocks", ("L3",), "redlock 4.2.0 (npm), Redlock.prototype._lock",
        "Three servers are paused while client 1 extends its lease. It finds no quorum, and "
        "unlocks the lock that it holds, on every server: client 2 is granted it during client "
        "1's lease.",
        "none",
        (
            # This loads its scripts into the servers.
            *ops(ONE, "acquire", "extend", "release"),
            Do(ONE, "acquire"),
            *(pause(server) for server in _SLOW),
            Do(ONE, "extend", expect="fail"),
            *(Heal(f"pause-{server}") for server in _SLOW),
            *TWO_WRITES,
            Do(TWO, "release"),
        ),
        TWICE, lock="node-redlock", ttl_ms=8000, causes=("extend-failed",),
    ),
    Scenario(
        "kazoo-waits-past-its-timeout", ("L4",), "kazoo 2.11.0, Lock.acquire",
        "Client 2 asks with a timeout of 1 s, and two of three servers crash. kazoo queues "
        "requests without a limit while it has no connection: acquire returns when the servers "
        "are back, some 9 s later.",
        "none",
        (
            *ops(TWO, *_TURN),
            Do(ONE, "acquire"),
            Begin(TWO, "acquire"),
            *(crash(f"crash-{server}", server) for server in ZOOKEEPER[:2]),
            TtlOver(),
            TtlOver(),
            *(Heal(f"crash-{server}") for server in ZOOKEEPER[:2]),
            Finish(TWO, expect="any"),
            # Its session may have survived the outage, if it reconnected in time.
            Do(ONE, "release", expect="any"),
        ),
        KEPT, {"wait_ms": 1000}, lock="kazoo", ttl_ms=2000,
    ),
    Scenario(
        "python-redis-lock-lost-in-silence", ("L5",), "python-redis-lock 4.0.1, Lock._lock_renewer",
        "Client 1 pauses past its lease and client 2 is granted the lock. Client 1's thread that "
        "renews the lease finds it gone and ends without notice: client 1 believes in its hold "
        "until it releases it.",
        "none", pause_after_acquire("ok"), _BLIND, {"auto_renewal": True},
        lock="python-redis-lock", ttl_ms=2000,
    ),
    *(
        Scenario(
            f"{lock}-paused", ("C4",), KLEPPMANN,
            "Client 1 pauses between its grant and its write until its session has expired. The "
            "library does not report how long a session is valid, and reports its end after the "
            "write.",
            "none", pause_after_acquire("ok", release), _BLIND, lock=lock, ttl_ms=2000,
        )
        for lock, release in (("kazoo", "any"), ("curator", "any"))
    ),
    *(
        Scenario(
            f"{lock}-paused", ("C4",), KLEPPMANN,
            "Client 1 pauses between its grant and its write until its lease has expired; client "
            "2 is granted the lock and writes, then client 1's write arrives.",
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
    what="critical behaviour of third-party libraries",
    lock="",
    entries=_SCENARIOS,
)
