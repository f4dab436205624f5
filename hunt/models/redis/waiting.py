"""Manages the clients that wait for a list or a sorted set at a Redis server (BLPOP, BZPOPMIN).

Clients are served in the order of arrival, and keys in the order of creation, but not in the
middle of a script or a transaction. A wait times out once the server's *wall* clock is past its end
(timeout.c: mstime), so a clock that jumps ends waits. The server checks after every command, and
ten times a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fencepost.hunt.models.redis.arguments import Arguments, CommandError
from fencepost.hunt.models.redis.commands import text
from fencepost.hunt.models.redis.cycle import Cycle
from fencepost.hunt.models.redis.host import Host
from fencepost.hunt.models.redis.list_moves import WAITING_MOVES, ends_of, moved
from fencepost.hunt.models.redis.lists import pop_one, timeout_ms
from fencepost.hunt.models.redis.replies import NoList
from fencepost.hunt.models.redis.scored_pops import scored_one
from fencepost.hunt.models.redis.store import Scores, Store
from fencepost.hunt.sim.network import Refusal, Request, Wire
from fencepost.hunt.sim.world import NEVER

Take = Callable[[Store, str], Any]
_TAKES: dict[str, tuple[Take, type]] = {
    "BLPOP": (lambda store, key: [key, pop_one(store, key, True)], list),
    "BRPOP": (lambda store, key: [key, pop_one(store, key, False)], list),
    "BZPOPMIN": (lambda store, key: scored_one(store, key, True), Scores),
    "BZPOPMAX": (lambda store, key: scored_one(store, key, False), Scores),
}


def _waits(name: str, args: Arguments) -> tuple[Arguments, Take, type]:
    """Return the keys for which a command waits, how it takes an element, and of which type."""
    if name not in WAITING_MOVES:
        return args[:-1], *_TAKES[name]
    return args[:1], lambda store, key: moved(store, key, args[1], ends_of(name, args)), list


@dataclass(eq=False)
class Waiter:
    """A blocked request. `take`: takes an element from a key, which has a value `of` this type.

    `until_ms`: its timeout by the wall clock; NEVER: none. `late`: the reply then. `left_ns`: when
    the server would notice that the client has closed the connection.
    """

    request: Request
    keys: tuple[str, ...]
    take: Take
    of: type
    until_ms: int
    late: NoList | None
    left_ns: int = NEVER


def _taken(waiter: Waiter, store: Store, key: str) -> Any:
    try:
        return waiter.take(store, key)
    except CommandError as error:  # the target of a move is no list
        return Refusal(str(error))


class Line:
    """The waiters of a server, in the order of arrival."""

    def __init__(self, server: Host, waiters: list[Waiter]) -> None:
        self.waiters = waiters
        self._server = server
        self._cycle = Cycle(server, server.world, server.attend)

    def enter(self, request: Request) -> None:
        server = self._server
        name, *args = [text(one) for one in request.asked]
        if not self.waiters:
            server.store.lists_made.clear()
        for_ms = timeout_ms(args[-1])
        until = server.clock.ms(server.world.now) + for_ms if for_ms else NEVER
        keys, take, of = _waits(name.upper(), args)
        # Redis ends the wait of a move with the absence of a list, as that of a pop.
        late = NoList() if name.upper() in WAITING_MOVES else None
        self.waiters.append(Waiter(request, tuple(keys), take, of, until, late))
        self._look_in_time()

    def leave(self, link: Wire) -> None:
        """Note that a client has closed its connection."""
        for waiter in self.waiters:
            if waiter.request.link is link:
                waiter.left_ns = min(waiter.left_ns, link.network.world.now + link.latency)

    def clear(self) -> None:
        """Remove all waiters: the server is down."""
        self.waiters.clear()
        self._look_in_time()

    def forget(self) -> None:
        """Drop all references to the run, which has ended."""
        self.waiters.clear()
        self._cycle.forget()
        del self._server

    def attend(self) -> bool:
        """Serve waiters and end expired waits; return whether any waiter was served."""
        self._forget_gone()
        served = self._served()
        for request, pair in served:
            request.give(pair)
        for waiter in self._late():
            waiter.request.give(waiter.late)
        self._look_in_time()
        return bool(served)

    def _forget_gone(self) -> None:
        """Remove waiters whose connection the server knows to be closed."""
        server = self._server
        now, cut = server.world.now, server.network.requests_cut
        self.waiters[:] = [
            one
            for one in self.waiters
            if (one.left_ns > now and one.request.link.client.up) or one.request.link.ends in cut
        ]

    def _served(self) -> list[tuple[Request, Any]]:
        """Return the waiters to serve, each with its reply. A move may make another list."""
        store, found = self._server.store, []
        while store.lists_made:
            keys = list(store.lists_made)
            store.lists_made.clear()
            for key in keys:
                for waiter in [one for one in self.waiters if key in one.keys]:
                    if type(store.look(key)) is waiter.of:
                        self.waiters.remove(waiter)
                        found.append((waiter.request, _taken(waiter, store, key)))
        return found

    def _late(self) -> list[Waiter]:
        """Remove and return the waiters whose timeout has expired."""
        shown = self._server.clock.ms(self._server.world.now)
        late = [one for one in self.waiters if one.until_ms < shown]
        for one in late:
            self.waiters.remove(one)
        return sorted(late, key=lambda one: one.until_ms)

    def look_soon(self) -> None:
        """Schedule a check in the next cycle, because the clock is about to change."""
        self._cycle.check_from(self._server.world.now + 1)

    def _look_in_time(self) -> None:
        """Schedule a check in the cycle in which the first wait times out."""
        first = min((one.until_ms for one in self.waiters), default=NEVER)
        if first == NEVER:
            self._cycle.stop()
        else:
            self._cycle.check_past(first)
