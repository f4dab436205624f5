"""Curator's LeaderSelector: its client is a program in Java (sdk/clients/curator/Selector.java)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.workloads.contract.option import Option
from fencepost.workloads.electors import curator_latch
from fencepost.workloads.transport.curator import program

ELECTOR = replace(
    curator_latch.ELECTOR,
    name="curator-selector",
    what="elector of Curator (JVM, Debian): LeaderSelector on ZooKeeper",
    program=program("Selector"),
    options={
        "listens": Option("yes", ("yes", "no"), what="whether the leader stops when SUSPENDED"),
        **curator_latch.ELECTOR.options,
    },
)
