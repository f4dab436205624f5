"""Simulates etcd's lock service: /v3/lock/lock and /v3/lock/unlock (server/etcdserver/api/v3lock).

Each client has a key under the lock's name, with its lease; the client with the oldest key owns the
lock. A server waits for its client, and deletes the key if the client closes the connection; a
server that crashes leaves the key to the lease. At the end of the wait etcd checks that the key
still exists. Version 3.4 does not, and so grants the lock to a client whose lease has expired (etcd
11456).

Not modelled: the one keepalive that the service may send for its client's lease at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fencepost.hunt.models.etcd.state import Refused, State
from fencepost.hunt.sim.network import Request, Server, Wire

_EXPIRED = "mutex: session is expired"
_UNKNOWN = 2


@dataclass
class Waiter:
    """A request that waits at a server until its key is the oldest.

    `left`: its client has closed the connection.
    """

    server: Server
    request: Request
    name: bytes
    key: bytes
    created: int
    left: bool = False


class Queue:
    """The waiting requests of all locks. `looks`: whether the key is checked at the end of the
    wait."""

    def __init__(self, state: State, looks: bool) -> None:
        self._state = state
        self._looks = looks
        self._waiting: list[Waiter] = []

    def enter(self, server: Server, request: Request, body: dict[str, Any]) -> None:
        """Enter the queue. Raises Refused if the lease does not exist."""
        self._waiting.append(Waiter(server, request, *self._state.enter(body)))

    def due(self) -> Iterator[Waiter]:
        """Yield the waiters whose turn has come."""
        for waiter in list(self._waiting):
            if not self._state.older(waiter.name, waiter.created):
                yield waiter

    def answer(self, waiter: Waiter) -> dict[str, Any]:
        """Return the answer to a waiter whose turn has come. Raises Refused."""
        self._waiting.remove(waiter)
        if self._looks and waiter.key not in self._state.keys:
            raise Refused(_UNKNOWN, _EXPIRED)
        return self._state.lock_answer(waiter.key)

    def crashed(self, server: Server) -> None:
        """Remove the waiters at a crashed server; their keys stay."""
        self._waiting = [waiter for waiter in self._waiting if waiter.server is not server]

    def left(self, link: Wire) -> bool:
        """Note that a client has closed its connection; return whether it waited on it."""
        mine = [waiter for waiter in self._waiting if waiter.request.link is link]
        for waiter in mine:
            waiter.left = True
        return bool(mine)

    def sweep(self, cut: set[tuple[int, int]]) -> None:
        """Delete the keys of clients that have left, unless a cut hides that from the server."""
        heard = [one for one in self._waiting if one.left and one.request.link.ends not in cut]
        for waiter in heard:
            self._waiting.remove(waiter)
            self._state.leave(waiter.key)
