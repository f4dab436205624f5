"""Curator's LeaderLatch: its client is a program in Java (sdk/clients/curator/Latch.java)."""

from __future__ import annotations

from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.transport.curator import program

ELECTOR = LockType(
    name="curator-latch",
    what="elector of Curator (JVM, Debian): LeaderLatch on ZooKeeper",
    make=None,
    servers=3,
    kind="zookeeper",
    options={
        "node_timeout_ms": Option(1000, least=1, what="how long the first connection may take"),
    },
    library="curator",
    program=program("Latch"),
    least_ttl_ms=1000,
    extends=False,
    ends_with="close",
    renews=True,
    elector=True,
)
