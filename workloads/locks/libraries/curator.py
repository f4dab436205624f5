"""Curator's InterProcessMutex: its client is a program in Java (sdk/clients/curator)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.workloads.locks.libraries import kazoo
from fencepost.workloads.transport.curator import program

LOCK = replace(
    kazoo.LOCK,
    name="curator",
    what="library Curator (JVM, Debian): InterProcessMutex on ZooKeeper",
    make=None,
    library="curator",
    program=program("Worker"),
    renews=False,
)
