"""Curator's InterProcessMutex: its client is a program in Java (sdk/clients/curator)."""

from __future__ import annotations

from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option

_JARS = (
    "curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
    "guava", "slf4j-api",
)  # fmt: skip
_CLASSES = ["/opt/fencepost/libraries/curator", *(f"/usr/share/java/{jar}.jar" for jar in _JARS)]

LOCK = LockType(
    name="curator",
    what="library Curator (JVM, Debian): InterProcessMutex on ZooKeeper",
    make=None,
    servers=3,
    kind="zookeeper",
    options={
        "token": Option("czxid", ("czxid", "none"), what="of the hold's znode"),
        "wait_ms": Option(10_000, least=1, what="how long acquire waits for the lock"),
        "node_timeout_ms": Option(1000, least=1, what="how long one request may take"),
    },
    promises={"minority": True, "fifo": True},
    library="curator",
    program=(
        "java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-cp", ":".join(_CLASSES), "Worker",
    ),
    least_ttl_ms=1000,
    extends=False,
    # Closing the client ends its session, and the ephemeral znodes go with it.
    ends_with="close",
)  # fmt: skip
