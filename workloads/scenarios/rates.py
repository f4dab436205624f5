"""Claims about numbers: how often, and at what cost. Published figures appear next to measured
ones.

Each rate is counted over runs with several seeds, each long enough for some hundred holds, or as
many as the published setting allows. `fencepost suite rates --seeds 20` narrows the intervals.
"""

from __future__ import annotations

from typing import Any

from fencepost.workloads.scenarios.runs import SHORT
from fencepost.workloads.scenarios.sources import JEPSEN, JEPSEN_2013, JEPSEN_2025, KLEPPMANN
from fencepost.workloads.scenarios.suite import Cost, Rate, Suite, TimedRun

_FAULTS = {
    "pause:client": "clients are paused",
    "pause:server": "the server is paused",
    "partition": "clients are cut off from it",
    "clock": "its clock jumps, drifts and strobes",
    "kill": "the server and clients crash, and the server restarts without its data",
}


def _one_redis(fault: str, words: str) -> TimedRun:
    settings: dict[str, Any] = {
        "time_s": 12.0,
        "ttl_ms": 1000,
        "nemesis": (fault,),
        "interval_s": 2.0,
        **SHORT,
        "hold": "0..100ms",
    }
    return TimedRun(
        f"one-redis-{fault.replace(':', '-')}",
        f"One Redis server under five clients with short holds, while {words} every 2 s or so.",
        {},
        claims=("C27",),
        source=KLEPPMANN,
        lock="redis",
        settings=settings,
        rate=Rate("violations", published="Described as only a cost; no source gives a number."),
    )


_ETCD = TimedRun(
    "etcd-3.4-paused",
    "The lock API of etcd with a lease of 2 s, five clients that read, wait for up to 2 s and "
    "write, and servers paused every 5 s or so. Jepsen tested etcd 3.4.3; this is the 3.4 of "
    "Debian bookworm, whose version the run names.",
    {},
    claims=("C28",),
    source=JEPSEN,
    lock="etcd-lock-api",
    settings={
        "time_s": 30.0,
        "ttl_ms": 2000,
        "nemesis": ("pause:server",),
        "interval_s": 5.0,
        "hold": "0..1ttl",
        "think": "0..20ms",
        "contention": "all",
        "server": {"etcd": "3.4"},
    },
    rate=Rate("lost", published="About 18 % of the acknowledged updates (etcd 3.4.3)."),
)

_PAUSED_S = 5.0
_TRUSTING = TimedRun(
    "etcd-3.4-trusting",
    "The same lock under the work and the faults of Jepsen's test: each client asks one server "
    "only, reads, waits for up to 2 s and writes, whatever becomes of its lease. The leader or all "
    "servers are paused for 5 s, with 5 s between two pauses. There are three servers here, and "
    "five in Jepsen's test.",
    {},
    claims=("C28",),
    source=JEPSEN,
    lock="etcd-lock-api",
    options={"node": "own"},
    settings={
        "time_s": 105.0,
        "ttl_ms": 2000,
        "hold": "0..1ttl",
        "think": "0",
        "contention": "all",
        "work": {"extend": 0, "trusting": 1},
        "server": {"etcd": "3.4"},
    },
    faults=tuple(
        {
            "at_s": (2 * number + 1) * _PAUSED_S,
            "duration_s": _PAUSED_S,
            "fault": ("pause:primary", "pause:all")[number % 2],
        }
        for number in range(10)
    ),
    rate=Rate("lost", published="About 18 % of the acknowledged updates (etcd 3.4.3)."),
)

_SENTINEL = TimedRun(
    "sentinel-partition",
    "Redis Sentinel on five nodes, which a partition splits into {1, 2}, with the primary, and "
    "{3, 4, 5}, each with some of the clients. They update a value in Redis itself under a lock "
    "in the same Redis; in Jepsen's test they added to a set, without a lock.",
    {},
    claims=("C29",),
    source=JEPSEN_2013,
    lock="redis-sentinel",
    settings={
        "time_s": 40.0,
        "ttl_ms": 2000,
        "store": "sentinel",
        **SHORT,
    },
    # Sentinel leaves an old primary alone for some 10 to 20 s after it has reappeared, and writes
    # to it meanwhile are lost too.
    faults=({"at_s": 3.0, "duration_s": 10.0, "fault": "partition:halves"},),
    rate=Rate("lost", published="56 % of the acknowledged writes."),
)

_NATS = TimedRun(
    "nats-power-loss",
    "Three NATS servers lose power together. They acknowledge a write before it is on their disks, "
    "and sync every two minutes. Clients update a value in a bucket under a lock in another bucket "
    "of the same servers; in Jepsen's test they published messages, to five servers.",
    {},
    claims=("C30",),
    source=JEPSEN_2025,
    lock="nats",
    guard="compare-and-set",
    settings={"time_s": 180.0, "ttl_ms": 2000, "store": "jetstream", **SHORT},
    faults=({"at_s": 140.0, "duration_s": 3.0, "fault": "power:all"},),
    rate=Rate("lost", published="14.1 % of the acknowledged messages (NATS 2.12.1)."),
)

SUITE = Suite(
    name="rates",
    what="how often, and at what cost: counts with intervals, next to published figures",
    lock="redis",
    entries=(
        *(_one_redis(fault, words) for fault, words in _FAULTS.items()),
        _ETCD,
        _TRUSTING,
        _SENTINEL,
        _NATS,
        Cost(
            "costs",
            "Redlock takes the round trips of five servers, one after the other; the locks of "
            "ZooKeeper and etcd take a consensus: each is slower than one Redis server.",
            ("C25",),
            KLEPPMANN,
            ("redlock", "zookeeper", "etcd"),
            2.0,
            published="One Redis server 100,000 a second, etcd usually not over 10,000 (overview).",
        ),
    ),
)
