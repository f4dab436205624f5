"""The fault families by name: what injects each, and how one is drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from nemesis import clock, failover, kill, memory, partition, pause
from nemesis.chains import Chains
from nemesis.hold import Hold
from nemesis.nemesis import Fault, Nemesis
from nemesis.site import Site


@dataclass(frozen=True)
class Layout:
    """What a fault may be aimed at. `restart_s`: how long a crashed server stays down."""

    servers: list[str]
    clients: list[str]
    ttl_s: float
    restart_s: float
    stores: tuple[str, ...] = ("storage",)


Draw = Callable[[Random, Layout], tuple[list[str], dict[str, Any]]]


@dataclass(frozen=True)
class Family:
    """A fault family. `receipt`: what proves that a fault took hold. `draw` gives targets and
    arguments; None: scripted use only.

    `moment` waits for the right moment before the fault is ordered. `own` says whether a
    target can bear no second fault at the same time.
    """

    name: str
    what: str
    receipt: str
    make: Callable[[Site, Chains], Nemesis]
    draw: Draw | None = None
    moment: Callable[[Site, Fault], None] | None = None
    own: bool = True


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            "partition",
            "links between nodes are cut with iptables",
            "a probe across each cut link gets no answer; at the end, one does",
            lambda site, chains: partition.Partition(site, chains),
            lambda random, at: partition.draw(random, at.servers, at.clients),
            own=False,
        ),
        Family(
            "pause",
            "SIGSTOP of a server, or of a client at a named point",
            "the process is in state T; at the end, it is not",
            lambda site, chains: pause.Pause(site),
            lambda random, at: pause.draw(random, at.servers, at.clients),
            moment=pause.await_point,
        ),
        Family(
            "clock",
            "clocks of servers and clients jump, drift, strobe",
            "the clock as the server or client itself shows it",
            lambda site, chains: clock.Clock(site),
            lambda random, at: clock.draw(random, at.servers, at.ttl_s),
        ),
        Family(
            "kill",
            "SIGKILL and restart of a server or a client",
            "the pid is gone; at the end, the server serves again",
            lambda site, chains: kill.Kill(site),
            lambda random, at: kill.draw(random, at.servers, at.clients, at.restart_s),
        ),
        Family(
            "failover",
            "the primary of a replicated Redis dies, and its replica is promoted",
            "the pid is gone and the replica says that it is master",
            lambda site, chains: failover.Failover(site),
            lambda random, at: failover.draw(random, at.servers),
        ),
        Family(
            "memory",
            "a Redis server runs into its memory limit, and evicts keys or refuses writes",
            "keys that it says were evicted, or a write that it refused",
            lambda site, chains: memory.Memory(site),
            lambda random, at: memory.draw(random, at.servers),
        ),
        Family(
            "hold",
            "packets of one direction are held back and arrive later",
            "a probe gets no answer; at the end, packets had been held and a probe gets one",
            lambda site, chains: Hold(site, chains),
            own=False,
        ),
    )
}

RANDOM = tuple(family.name for family in FAMILIES.values() if family.draw)
"""The families that `--nemesis` can name."""
