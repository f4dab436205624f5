"""Curator's InterProcessMutex: its client is a program in Java (sdk/clients/curator)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.workloads.locks.libraries import kazoo

_JARS = (
    "curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
    "guava", "slf4j-api",
)  # fmt: skip
_CLASSES = ["/opt/fencepost/libraries/curator", *(f"/usr/share/java/{jar}.jar" for jar in _JARS)]

LOCK = replace(
    kazoo.LOCK,
    name="curator",
    what="library Curator (JVM, Debian): InterProcessMutex on ZooKeeper",
    make=None,
    library="curator",
    program=(
        "java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-cp", ":".join(_CLASSES), "Worker",
    ),
    renews=False,
)  # fmt: skip
