"""Watches of clients that speak gRPC: they get the events of a range of keys, in order.

An event is sent at the server of the watch. While that server is paused, it waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fencepost.hunt.models.etcd.requests import Keys
from fencepost.hunt.models.etcd.state import State
from fencepost.hunt.sim.network import Server
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import Timer, World

Body = dict[str, Any]
_KNOWN = {"key", "range_end", "start_revision", "filters"}
_FILTERED = {"NOPUT": "PUT", "NODELETE": "DELETE"}


@dataclass(eq=False)
class Watch:
    """`next`: the revision of the first event that it has not got."""

    server: Server
    boots: int
    keys: Keys
    next: int
    without: frozenset[str]
    say: Callable[[Body], None]

    def wants(self, key: bytes, kind: str) -> bool:
        first, end = self.keys
        inside = key == first if not end else first <= key and (key < end or end == b"\0")
        return inside and kind not in self.without


class AllWatches:
    """The watches at all servers of a cluster."""

    def __init__(self, state: State, world: World) -> None:
        self.state = state
        self.world = world
        self._watches: list[Watch] = []

    def add(self, watch: Watch) -> None:
        self._watches.append(watch)

    def end(self, watch: Watch) -> None:
        if watch in self._watches:
            self._watches.remove(watch)

    def gone(self, server: Server) -> None:
        """Drop the watches at a server, which is down."""
        self._watches = [one for one in self._watches if one.server is not server]

    def notify(self) -> None:
        """Send new events to the watches that want them."""
        for watch in self._watches:
            if watch.next <= self.state.revision:
                # Events of a paused server wait until it continues.
                due = Timer(watch.server, lambda watch=watch: self.push(watch))  # type: ignore[misc]
                self.world.at(self.world.now, due)

    def push(self, watch: Watch) -> None:
        """Send a watch the events that it has not got."""
        if watch not in self._watches or watch.boots != watch.server.boots:
            return
        events = [
            event
            for _, key, event in self.state.since(watch.next)
            if watch.wants(key, event.get("type", "PUT"))
        ]
        watch.next = max(watch.next, self.state.revision + 1)
        if events:
            watch.say({"header": self.state.header(), "events": events})


class Watches:
    """The watches at one server."""

    def __init__(self, every: AllWatches, server: Server) -> None:
        self._every = every
        self._server = server

    def header(self) -> Body:
        return self._every.state.header()

    def keep(self) -> None:
        """Keep the events from now on, because a client may watch."""
        self._every.state.keep_events()

    def begin(self, asked: Body, say: Callable[[Body], None]) -> Watch:
        """Begin a watch; `say` gets its answers."""
        if strange := asked.keys() - _KNOWN:
            raise Unknown(f"the model of etcd has no watch with {min(strange)}")
        state = self._every.state
        first = int(asked.get("start_revision", 0)) or state.revision + 1
        without = frozenset(_FILTERED[one] for one in asked.get("filters", ()))
        watch = Watch(self._server, self._server.boots, Keys.of(asked), first, without, say)
        self._every.add(watch)
        return watch

    def push(self, watch: Watch) -> None:
        self._every.push(watch)

    def end(self, watch: Watch) -> None:
        self._every.end(watch)
