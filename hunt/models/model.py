"""The bundle of a model: how servers of one kind are simulated.

A kind names its model (`Kind.model`, node/kind.py). registry.py lists those of fencepost; an
installed package adds one with an entry point:

    [project.entry-points."fencepost.models"]
    my-server = "my_package.my_model:MODEL"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.hunt.models import words
from fencepost.hunt.sim.network import Network, Server
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Node

Begin = Callable[[Node, Callable[[], None]], object]
"""Starts a task on a node; an error in it ends the run."""


@dataclass(frozen=True)
class Storage:
    """The arguments for creating the server on the storage node; `servers` are the lock's."""

    name: str
    index: int
    network: Network
    servers: Sequence[Server]
    begin: Begin


@dataclass(frozen=True)
class Model:
    """A model of one kind of server.

    `servers` creates the lock's servers, each of which answers commands (`Server.handle`) and
    refuses those that the model lacks (`Unknown`). Clients reach them over the links of
    hunt/sim/link.py and hunt/models/http.py, and libraries over simulated sockets if servers have a
    `session`.

    - `title`: the name of such servers in sentences; the model's own unless given.
    - `stores`: where a resource can be kept (workloads/resources), each with the constructor of its
      storage server.
    - `steps`: each request of a lock is a step of its op (workloads/client/steps.py), so a real
      client can be stopped before it.
    - `live`: clients in any language can use it: hunts play it for real processes (hunt/live).
      `least_ttl_ms`: its shortest lease in such a hunt, where time is real.
    - `slack_ns`: how long its servers may keep a lease after its end, because they look for such
      leases at times. Faults that are to outlast a lease take longer by as much.
    - `keeps_ns`: how long the longest session of an undisturbed run lasts after its client is gone.
      Faults of a user lock outlast it.
    - `outage`: the messages that a client loses in an outage, "both" or the "replies". Its clients
      keep leases alive, and its servers have one state. A client that waits for a lock in an outage
      may continue with a lease that has expired.
    - `gate`: a gate on a client's node knows its requests (workloads/client/gate.py).
    - `sockets`: libraries that bring their own connections can use it.
    - `client`: the library that locks on such servers use, fencepost's own as well: they bring
      their own connections.
    - `in_session`: whether a session with this server kept a lock at a time (ns). None: locks there
      end in one way only.
    - `wall_leases`: its leases end by the wall clock, which the hunt can skew.
    - `evicts`: it has a memory limit.
    - `lease_ns`: how long the longest lease on a server still lives at a time (ns). A hunt of real
      clients needs it (`live`).
    - `asked`, `answered`: describe a command, and its reply, in a few words.
    """

    name: str
    servers: Callable[[Setting, Network], list[Server]]
    stores: Mapping[str, Callable[[Storage], Server]] = field(default_factory=dict)
    title: str = ""
    steps: bool = False
    live: bool = False
    least_ttl_ms: int = 0
    slack_ns: Callable[[Setting], int] = lambda setting: 0
    keeps_ns: Callable[[Server], int] = lambda server: 0
    outage: str = ""
    gate: bool = False
    sockets: bool = False
    client: str = ""
    in_session: Callable[[Server, int], bool] | None = None
    wall_leases: bool = False
    evicts: bool = False
    lease_ns: Callable[[Server, int], int] = lambda server, now_ns: 0
    asked: Callable[[tuple[Any, ...]], str] = words.name
    answered: Callable[[tuple[Any, ...], Any], str] = words.reply
