"""Scenarios for every lock on three servers with consensus, ZooKeeper's and etcd's alike."""

from __future__ import annotations

from fencepost.workloads.scenarios.expectations import DAMAGED, FENCED, KEPT, TWO_BELIEVE
from fencepost.workloads.scenarios.scenario import Scenario
from fencepost.workloads.scenarios.schedules import (
    holder_cut_off,
    holder_dies,
    majority_down,
    pause_after_acquire,
    server_down,
)
from fencepost.workloads.scenarios.sources import KLEPPMANN, OVERVIEW


def of_a_cluster(servers: list[str], lease: str) -> tuple[Scenario, ...]:
    """Return the expectations for locks on three servers with consensus; `lease` is its name
    there."""
    pause = (
        f"Client 1 pauses between its grant and its write until its {lease} has expired. Client 2 "
        "is granted the lock and writes; then client 1 wakes up and writes."
    )
    # The client that wakes up releases over a connection that the servers have closed meanwhile:
    # the release may be refused, or get no answer.
    late, fenced_off = (pause_after_acquire(last, release="failing") for last in ("ok", "fail"))
    return (
        Scenario(
            "pause-after-acquire", ("C4",), KLEPPMANN, pause, "none",
            late, TWO_BELIEVE | DAMAGED, ttl_ms=2000,
        ),
        Scenario(
            "pause-after-acquire", ("C5", "A4"), KLEPPMANN,
            f"{pause} The fence refuses it.", "fenced",
            fenced_off, TWO_BELIEVE | FENCED, ttl_ms=2000,
        ),
        Scenario(
            "look-at-the-clock", ("C6",), KLEPPMANN,
            f"{pause} It had checked its clock right before: the pause came after the check.",
            "deadline", late, TWO_BELIEVE | DAMAGED, ttl_ms=2000,
        ),
        Scenario(
            "holder-dies", ("C20", "P2"), OVERVIEW,
            f"The holder crashes. Its {lease} expires, and client 2 is granted the lock.", "none",
            holder_dies(), KEPT, ttl_ms=2000,
        ),
        Scenario(
            "holder-cut-off", ("C19",), OVERVIEW,
            "The holder is cut off from all servers. It gives up the lock before its "
            f"{lease} expires at the servers: its clock runs while it waits, unlike a "
            "paused client's.", "none",
            holder_cut_off(servers), KEPT, ttl_ms=2000,
        ),
        Scenario(
            "minority-down", ("P4",), OVERVIEW,
            "One of three servers crashes: the lock is still granted.", "none",
            server_down(servers[0]), KEPT, ttl_ms=2000,
        ),
        Scenario(
            "majority-down", ("C18",), OVERVIEW,
            "Two of three servers crash: no client is granted the lock until one is back.", "none",
            majority_down(*servers[:2]), KEPT, ttl_ms=2000,
        ),
    )  # fmt: skip
