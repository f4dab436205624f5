"""The possible targets of a fault: the nodes of a test, and the names for some of them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from fencepost.nemesis.site import Site

PRIMARY = "primary"
"""The server that leads when the fault begins, as the servers report then."""

HOLDER = "holder"
"""The client that holds a lock when the fault begins, as far as clients have reported."""

STORAGE = "storage"


class ServerKind(Protocol):
    """The properties of the servers' kind that faults depend on; node/kind.py explains each
    field."""

    @property
    def name(self) -> str: ...
    @property
    def members(self) -> bool: ...
    @property
    def independent(self) -> bool: ...
    @property
    def lease_clock(self) -> str: ...
    @property
    def leader_leases(self) -> bool: ...
    @property
    def grain_s(self) -> float: ...
    @property
    def replaceable(self) -> bool: ...
    @property
    def evicts(self) -> bool: ...
    @property
    def http(self) -> bool: ...


@dataclass(frozen=True)
class UnknownKind:
    """A kind that fencepost does not know: faults assume nothing about it."""

    name: str = "of an unknown kind"
    members: bool = False
    independent: bool = False
    lease_clock: str = ""
    leader_leases: bool = False
    grain_s: float = 0.0
    replaceable: bool = False
    evicts: bool = False
    http: bool = False


@dataclass(frozen=True)
class Layout:
    """The nodes of a test. `restart_s`: downtime of a crashed server.

    `kind` is that of the servers; `leads`: one of them is the primary or the leader; `loses`: its
    successor may lack its latest grants. `shown` are the clocks that each node's process shows.
    `foreign`: the servers are in external containers, whose networks end with them; `mortal` are
    those that Docker removes when they end. `failpoints`: those of the lock's own code. `renews`:
    whether threads of its clients renew leases; None: unknown. `bound_s`: the bound of liveness;
    `time_s`: how long clients work.
    `cancels`: its clients can cancel a call of the lock. `lacks`: the variants of faults that
    its nodes cannot have, as FAMILY/VARIANT; empty if none was asked.
    """

    servers: list[str]
    clients: list[str]
    ttl_s: float
    restart_s: float
    stores: tuple[str, ...] = (STORAGE,)
    kind: ServerKind = UnknownKind()
    leads: bool = False
    replicated: bool = False
    loses: bool = False
    shown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    foreign: bool = False
    mortal: tuple[str, ...] = ()
    failpoints: tuple[str, ...] = ()
    renews: bool | None = False
    bound_s: float = 5.0
    time_s: float = math.inf
    cancels: bool = True
    lacks: frozenset[str] = frozenset()

    @property
    def nodes(self) -> list[str]:
        return [*self.servers, *self.clients, *self.stores]

    def must_lead(self) -> None:
        """Raise ValueError if none of the servers leads."""
        if not self.leads:
            raise ValueError("none of its servers leads: each is independent")


@dataclass(frozen=True)
class Drawn:
    """A drawn fault. `after_s`: a delay after its drawn time; `duration_s` None: its drawn
    duration."""

    targets: list[str]
    arguments: dict[str, Any]
    after_s: float = 0.0
    duration_s: float | None = None


SERVERS = ("one", "some", "minority", "majority", "all", PRIMARY)
"""Names for servers, as `pick` knows them."""


def pick(random: Random, at: Layout, target: str) -> list[str]:
    """Return the nodes of a name; `primary` stays, to be resolved later."""
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


def renamed(
    targets: Sequence[str], arguments: Mapping[str, Any], names: Mapping[str, str]
) -> tuple[list[str], dict[str, Any]]:
    """Return a fault's targets, and its arguments with the nodes in them, with some nodes renamed.

    Two nodes may get one name: it comes once, and no link is left from a node to itself.
    """
    nodes = list(dict.fromkeys(names.get(node, node) for node in targets))
    found = dict(arguments)
    for key in ("source", "client"):
        if key in found:
            found[key] = names.get(found[key], found[key])
    if "links" in found:
        links = ([names.get(node, node) for node in link] for link in found["links"])
        found["links"] = [link for link in links if link[0] != link[1]]
    return nodes, found


def listed(nodes: Sequence[str]) -> str:
    """List nodes in a sentence: "redis-1, redis-2 and redis-3"."""
    *most, last = nodes
    return f"{', '.join(most)} and {last}" if most else last


def sentence(nodes: Sequence[str], one: str, several: str) -> str:
    """Return the nodes and their verb: "redis-1 crashes", "redis-1 and redis-2 crash"."""
    return f"{listed(nodes)} {one if len(nodes) == 1 else several}"


# Nearly every client that has held a lock for this long keeps it for longer than an injection
# takes.
_HELD_S = 0.05
# If no client holds one for that long, after a while a hold that has just begun suffices.
_LONG_S, _WAIT_S = 4.0, 8.0


def holder(site: Site) -> tuple[str, str]:
    """Return the client that holds a lock now, and its description; any client if none does for a
    while."""
    begun = time.monotonic()
    # A client that has just resumed from a pause may be about to release its hold.
    time.sleep(_HELD_S)
    while (waited_s := time.monotonic() - begun) < _WAIT_S:
        found = site.holder(_HELD_S if waited_s < _LONG_S else 0.0)
        if found is not None:
            return found, f"{found} (the holder)"
        time.sleep(0.005)
    return site.clients[0], f"{site.clients[0]} (no client held a lock)"


# An election takes a second or two, longer while members come and go.
_ELECTION_S = 10.0


def leader(site: Site) -> tuple[str, str]:
    """Return the server that leads now, and its description. Raises RuntimeError if none reports it
    in time."""
    end = time.monotonic() + _ELECTION_S
    while (found := site.primary()) is None and time.monotonic() < end:
        time.sleep(0.05)
    if found is None:
        raise RuntimeError(f"no server has reported for {_ELECTION_S:g} s that it leads")
    return found, f"{found} (the primary)"
