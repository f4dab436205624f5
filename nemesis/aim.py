"""What a fault is aimed at: the nodes of a test, and the names for some of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fencepost.nemesis.asked import Asked
from fencepost.nemesis.nemesis import Fault
from fencepost.nemesis.site import Site

PRIMARY = "primary"
"""Stands for the server that leads when the fault begins: asked of the servers then."""

STORAGE = "storage"


@dataclass(frozen=True)
class Layout:
    """What a fault may be aimed at. `restart_s`: how long a crashed server stays down.

    `kind` is that of the servers; `leads`: one of them is the primary or the leader. `shown` are
    the clocks that each node's process shows.
    """

    servers: list[str]
    clients: list[str]
    ttl_s: float
    restart_s: float
    stores: tuple[str, ...] = (STORAGE,)
    kind: str = "redis"
    leads: bool = False
    replicated: bool = False
    shown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def nodes(self) -> list[str]:
        return [*self.servers, *self.clients, *self.stores]


@dataclass(frozen=True)
class Drawn:
    """A fault as drawn. `after_s`: later than drawn; `duration_s` None: what was drawn for it."""

    targets: list[str]
    arguments: dict[str, Any]
    after_s: float = 0.0
    duration_s: float | None = None


SERVERS = ("one", "some", "minority", "majority", "all", PRIMARY)
"""Names for servers, as `pick` knows them."""


def pick(random: Random, at: Layout, target: str) -> list[str]:
    """The nodes that a name stands for; `primary` stays, to be asked for later."""
    count = len(at.servers)
    match target:
        case "one" | "server":
            return [random.choice(at.servers)]
        case "some":
            return random.sample(at.servers, random.randint(1, count))
        case "minority":
            return random.sample(at.servers, max(1, (count - 1) // 2))
        case "majority":
            return random.sample(at.servers, count // 2 + 1)
        case "all":
            return list(at.servers)
        case "client":
            return [random.choice(at.clients)]
        case "clients":
            return list(at.clients)
    return [target]


def subject(nodes: Sequence[str]) -> str:
    """The nodes as a sentence names them; `resolve` puts the server's name to the primary."""
    return "the primary" if list(nodes) == [PRIMARY] else " and ".join(nodes)


def resolve(site: Site, fault: Fault) -> Fault:
    """The fault with the server that leads now in the place of `primary`.

    Raises:
        RuntimeError: no server says that it leads.
    """
    if PRIMARY not in fault.targets:
        return fault
    found = _leader(site)
    if found is None:
        raise RuntimeError(f"no server says that it leads, for {_ELECTION_S:g} s")
    targets = list(dict.fromkeys(found if node == PRIMARY else node for node in fault.targets))
    arguments = dict(fault.arguments)
    if "links" in arguments:
        links = [
            [found if node == PRIMARY else node for node in link] for link in arguments["links"]
        ]
        arguments["links"] = [link for link in links if link[0] != link[1]]
    if "words" in arguments:
        arguments["words"] = str(arguments["words"]).replace(
            "the primary", f"{found} (the primary)"
        )
    return Fault(fault.name, fault.family, targets, arguments)


# An election takes a second or two, longer while members come and go.
_ELECTION_S = 6.0


def _leader(site: Site) -> str | None:
    end = time.monotonic() + _ELECTION_S
    while (found := site.primary()) is None and time.monotonic() < end:
        time.sleep(0.05)
    return found


def named(asked: Asked, known: Sequence[str], at: Layout, nodes: Sequence[str]) -> str:
    """Why the target of an entry can not be had; else ''."""
    if asked.target == PRIMARY and PRIMARY in known and not at.leads:
        return "none of its servers leads: each is on its own"
    if asked.target and not (known or nodes):
        return "it takes no target"
    if asked.target and asked.target not in (*known, *nodes):
        return f"the test has no {asked.target!r}; choose one of: {', '.join((*known, *nodes))}"
    return ""
