"""ZooKeeper's lock: the service never grants twice; its clients' beliefs are another matter."""

from __future__ import annotations

from fencepost.workloads.scenarios.consensus import of_a_cluster
from fencepost.workloads.scenarios.expectations import KEPT
from fencepost.workloads.scenarios.runs import CONTROL_S, SHORT, clocks, controls, explore, queue
from fencepost.workloads.scenarios.sources import RECIPES
from fencepost.workloads.scenarios.suite import Suite, TimedRun

_HERD = TimedRun(
    "herd",
    "Broken on purpose: every waiter watches the holder's znode, and each release wakes all.",
    KEPT | {"liveness": False},
    claims=("C21", "A5"),
    source=RECIPES,
    lock="broken-herd",
    settings={"time_s": CONTROL_S, "ttl_ms": 2000} | SHORT,
)

SUITE = Suite(
    name="zookeeper",
    what="ZooKeeper: the service never grants twice",
    lock="zookeeper",
    entries=(
        *controls(2000, {}),
        queue("A5"),
        _HERD,
        clocks(2000),
        *of_a_cluster([f"zookeeper-{n}" for n in (1, 2, 3)], "session"),
        explore(2000),
    ),
)
