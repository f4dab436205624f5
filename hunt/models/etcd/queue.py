"""etcd's own lock service: /v3/lock/lock and /v3/lock/unlock (server/etcdserver/api/v3lock).

Who asks has a key under the lock's name, with its lease; the lock is its own once no key there is
older. A server waits in its client's name, and takes the key away where the client goes; one that
crashes leaves it to the lease. Once the wait is over, etcd looks whether the key is still there:
3.4 does not, and answers a client whose lease has ended meanwhile with the lock (etcd 11456).

Left out: the one keepalive that the service may send for its client's lease before it lets it be.
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
    """A request that waits at a server until its key is the oldest. `left`: its client has closed
    the connection."""

    server: Server
    request: Request
    name: bytes
    key: bytes
    created: int
    left: bool = False


class Queue:
    """Who waits for which lock. `looks`: whether the key is looked for once the wait is over."""

    def __init__(self, state: State, looks: bool) -> None:
        self._state = state
        self._looks = looks
        self._waiting: list[Waiter] = []

    def enter(self, server: Server, request: Request, body: dict[str, Any]) -> None:
        """Take a place. Raises Refused where the lease is not there."""
        self._waiting.append(Waiter(server, request, *self._state.enter(body)))

    def due(self) -> Iterator[Waiter]:
        """Those whose turn it is."""
        for waiter in list(self._waiting):
            if not self._state.older(waiter.name, waiter.created):
                yield waiter

    def answer(self, waiter: Waiter) -> dict[str, Any]:
        """What a waiter is told once its turn has come. Raises Refused."""
        self._waiting.remove(waiter)
        if self._looks and waiter.key not in self._state.keys:
            raise Refused(_UNKNOWN, _EXPIRED)
        return self._state.told_of(waiter.key)

    def crashed(self, server: Server) -> None:
        """Nobody answers those who waited there; their keys stay."""
        self._waiting = [waiter for waiter in self._waiting if waiter.server is not server]

    def left(self, link: Wire) -> bool:
        """A client has closed its connection; return whether it waited on it."""
        mine = [waiter for waiter in self._waiting if waiter.request.link is link]
        for waiter in mine:
            waiter.left = True
        return bool(mine)

    def sweep(self, cut: set[tuple[int, int]]) -> None:
        """Take away the keys of those who have left, where the server has heard of it."""
        heard = [one for one in self._waiting if one.left and one.request.link.ends not in cut]
        for waiter in heard:
            self._waiting.remove(waiter)
            self._state.leave(waiter.key)
