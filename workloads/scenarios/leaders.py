"""Leader election: does the work of a leader end before that of the next one begins?

Two candidates; each in turn is cut off from the servers of the election, but not from the resource.
So one of the two cuts meets the leader. The expectations are the behaviour of these versions
(docs/libraries.md). A scheduler, which sends its jobs itself, is also paused between its look at
the jobs that are due and the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.workloads.scenarios.expectations import Expected
from fencepost.workloads.scenarios.sources import SEEN
from fencepost.workloads.scenarios.suite import Suite, TimedRun

_TTL_S = 3.0
_FIRST_S, _FOR_S, _BETWEEN_S = 8.0, 10.0, 22.0
KUBERNETES = ("kubernetes-1",)
ZOOKEEPER = tuple(f"zookeeper-{n}" for n in (1, 2, 3))
POSTGRES = ("postgres-1",)
REDIS = ("redis-1",)

_APART: Expected = {"leadership": True, "store": True, "resource": True}
_TWO_WORK: Expected = {"leadership": False, "mutual_exclusion": False, "store": True}
_TWICE: Expected = {**_TWO_WORK, "jobs": False}


def _cuts(servers: Sequence[str], how: str) -> tuple[Mapping[str, Any], ...]:
    """Return a cut of one candidate after the other from the servers of the election."""
    return tuple(
        {
            "at_s": _FIRST_S + number * _BETWEEN_S,
            "duration_s": _FOR_S,
            "family": "partition",
            "targets": [client, *servers],
            "arguments": {"links": [[client, server] for server in servers], "how": how},
        }
        for number, client in enumerate(("client-1", "client-2"))
    )


def _pause(for_s: float) -> tuple[Mapping[str, Any], ...]:
    """Return a pause of the leader where it is about to send jobs."""
    about = {"family": "pause", "targets": ["holder"], "arguments": {"point": "before-send"}}
    return ({"at_s": _FIRST_S, "duration_s": for_s, **about},)


def _run(
    name: str, claim: str, what: str, expected: Expected, *,
    lock: str = "kubernetes-client", servers: Sequence[str] = KUBERNETES, how: str = "drop",
    options: Mapping[str, Any] | None = None, paused_s: float = 0.0, **settings: Any,
) -> TimedRun:  # fmt: skip
    usual = {
        "time_s": _FIRST_S + 2 * _BETWEEN_S,
        "ttl_ms": round(_TTL_S * 1000),
        "concurrency": 2,
        "hold": "30ttl..30ttl",
        "liveness_bound_s": 15.0,
    }
    cuts = _cuts(servers, how) if servers else ()
    return TimedRun(
        name, what, expected, claims=(claim,), source=SEEN, lock=lock, options=options or {},
        settings=usual | settings, faults=_pause(paused_s) if paused_s else cuts,
    )  # fmt: skip


def _control(lock: str) -> TimedRun:
    return TimedRun(
        f"{lock}-control",
        "No faults: candidates lead in turn, and no two work at once.",
        {},
        calm=True,
        lock=lock,
        settings={"time_s": 20.0, "ttl_ms": round(_TTL_S * 1000), "liveness_bound_s": 15.0},
    )


SUITE = Suite(
    name="leaders",
    what="leader election: two leaders at work, on ZooKeeper, a model of Kubernetes and others",
    lock="kubernetes-client",
    entries=(
        _control("kubernetes-client"),
        _control("kazoo-election"),
        _control("curator-latch"),
        _control("curator-selector"),
        _control("postgres-leader"),
        _control("tooz-leader"),
        _control("redbeat-leader"),
        _control("apscheduler-leader"),
        _run(
            "kubernetes-request-hangs",
            "L6",
            "The leader's renewal has no answer. The library waits for it without a timeout and "
            "does not call onstopped_leading: two leaders work at once.",
            _TWO_WORK,
        ),
        _run(
            "kubernetes-request-is-reset",
            "L7",
            "The leader's connections are reset. run() raises an exception of urllib3, and "
            "onstopped_leading is not called: work that ends with this callback only continues.",
            _TWO_WORK,
            how="reject",
            stops="callback",
        ),
        _run(
            "kubernetes-request-is-reset-exit",
            "L7",
            "The same, and the application's process ends with run(): the work ends in time.",
            _APART,
            how="reject",
        ),
        _run(
            "kazoo-listens",
            "L8",
            "The leader loses its connection to ZooKeeper, and its listener stops the work.",
            {**_APART, "lease_exclusion": True},
            lock="kazoo-election",
            servers=ZOOKEEPER,
        ),
        _run(
            "kazoo-without-a-listener",
            "L8",
            "The same without a listener: the leader's work continues when the next one leads.",
            _TWO_WORK,
            lock="kazoo-election",
            servers=ZOOKEEPER,
            options={"listens": "no"},
        ),
        _run(
            "curator-latch",
            "L9",
            "The leader loses its connection to ZooKeeper. LeaderLatch calls notLeader as soon as "
            "the connection is SUSPENDED: the work ends in time.",
            {**_APART, "lease_exclusion": True},
            lock="curator-latch",
            servers=ZOOKEEPER,
        ),
        _run(
            "curator-selector",
            "L10",
            "The same with LeaderSelector and the adapter that its documentation recommends: "
            "takeLeadership is interrupted in time.",
            {**_APART, "lease_exclusion": True},
            lock="curator-selector",
            servers=ZOOKEEPER,
        ),
        _run(
            "curator-selector-without-a-listener",
            "L10",
            "The same with a listener that ignores the state of the connection: two leaders work "
            "at once.",
            _TWO_WORK,
            lock="curator-selector",
            servers=ZOOKEEPER,
            options={"listens": "no"},
        ),
        _run(
            "postgres-leader",
            "L11",
            "The leader loses its session with PostgreSQL, gets no answer to its queries, and "
            "stops at its deadline.",
            _APART,
            lock="postgres-leader",
            servers=POSTGRES,
        ),
        _run(
            "postgres-leader-reconnects",
            "L11",
            "The same, and the application replaces its session in silence, as a pool does. The "
            "server has freed the lock: two leaders work at once.",
            _TWO_WORK,
            lock="postgres-leader",
            servers=POSTGRES,
            options={"reconnects": "yes"},
        ),
        _run(
            "pgbouncer-leader",
            "L12",
            "No fault. Both candidates use the same session of the server, which has the lock "
            "already when the second one tries: two leaders work at once.",
            {**_TWO_WORK, "lease_exclusion": False},
            lock="pgbouncer-leader",
            servers=(),
        ),
        _run(
            "tooz-leader",
            "L13",
            "The leader loses its connection to Redis. Its heartbeat waits for the answer and "
            "repeats the request; nothing tells the leader that its lock has expired.",
            _TWO_WORK,
            lock="tooz-leader",
            servers=REDIS,
        ),
        _run(
            "redbeat-paused",
            "L14",
            "The scheduler reads which jobs are due, and is paused past its lock. The next one "
            "sends them. Then the first one sends them again.",
            _TWICE,
            lock="redbeat-leader",
            paused_s=6.0,
            time_s=30.0,
        ),
        _run(
            "rq-paused",
            "L15",
            "The same with RQ's scheduler, whose lock lasts for 61 s.",
            _TWICE,
            lock="rq-leader",
            paused_s=66.0,
            time_s=100.0,
            ttl_ms=61_000,
        ),
        _run(
            "apscheduler-cut",
            "L16",
            "The leader is cut off from Redis, and cannot extend its lock. Its scheduler continues "
            "when the next one has begun: jobs are done twice.",
            _TWICE,
            lock="apscheduler-leader",
            servers=REDIS,
            options={"on_loss": "ignore"},
        ),
    ),
)
