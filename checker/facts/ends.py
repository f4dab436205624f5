"""Derives when a hold may have ended; no other module decides that.

A grant ends in three ways. Its holder gives it up: it releases the lock, reports the hold lost,
closes its connections, or dies. Its lease expires (holds.py). Or the service ends it early, which
only some locks allow; the test says which (`lock.ends_with`):

    lease        only a release that reached the service, or time, ends a grant (the default)
    close        also its client's `close`, from the invocation on (etcd, ZooKeeper)
    connection   also the loss of its connection: its client killed or cut off, or the server
                 gone (PostgreSQL)

A fault that may have cut a client off may have ended its grant. A simulated server knows which
sessions it ended, and when (`session_ends`); then no fault counts but these ends.

An end is seldom known to the nanosecond, and rounding it either way blames the wrong party. So an
end has two bounds. Before `earliest` the client certainly held the lock: a second grant by then is
a double grant. At `latest` the client had certainly given it up: from then on the lock must become
available.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from fencepost.checker.facts.faults import faults
from fencepost.checker.history.history import SPONTANEOUS, History, Op

FOREVER = math.inf
ENDS_WITH = ("lease", "close", "connection")
DEAD = ("killed", "crashed")
"""The error kinds with which the harness completes the open ops of a dead worker."""


def ends_with(test: Mapping[str, Any] | None) -> str:
    """Return how a grant of the test's lock may end early.

    Raises:
        ValueError: the test names an unknown way.
    """
    lock = (test or {}).get("lock")
    way = lock.get("ends_with", "lease") if isinstance(lock, Mapping) else "lease"
    if way not in ENDS_WITH:
        raise ValueError(f"lock.ends_with {way!r}: choose one of {', '.join(ENDS_WITH)}")
    return str(way)


SessionEnds = tuple[tuple[str, tuple[int, ...]], ...]


def session_ends(test: Mapping[str, Any] | None) -> SessionEnds:
    """Return when the servers ended sessions of each client (ns), where the test tells it, as that
    of a simulated run does: pairs of a node and its times, sorted.

    Raises:
        ValueError: it is no object of lists of integers.
    """
    told = (test or {}).get("session_ends")
    if told is None:
        return ()
    try:
        return tuple(sorted((node, tuple(sorted(map(int, at)))) for node, at in told.items()))
    except (AttributeError, TypeError) as error:
        raise ValueError("session_ends is no object of lists of times") from error


class End(Struct, frozen=True, gc=False):
    """The end of a hold, in ns since the test's start; `FOREVER` if it was never seen.

    `by` is "release", "lost", "refused" (an extend), "close", "death" (killed or crashed), "doubt"
    (killed without proof), "gone" (an op of its process ended `info`) or "never".
    """

    earliest: float
    latest: float
    by: str


NEVER = End(FOREVER, FOREVER, "never")


def first(ends: Iterable[End]) -> End:
    """Return the end of a hold that any of these would have ended."""
    soonest, latest = NEVER, FOREVER
    for end in ends:
        if (end.earliest, end.latest) < (soonest.earliest, soonest.latest):
            soonest = end
        if end.latest < latest:
            latest = end.latest
    return soonest if soonest.latest == latest else End(soonest.earliest, latest, soonest.by)


@dataclass(slots=True)
class _Life:
    """What a process did: the time of its last op, the invocation of its first op that ended
    `info`, and its close. `died`: when the harness recorded its death."""

    seen: int
    unsure: int | None = None
    died: int | None = None
    closes: list[Op] = field(default_factory=list)


class Departures:
    """When the clients of a history closed, died or disappeared, by process."""

    def __init__(
        self,
        history: History,
        ends_with: str,
        servers: frozenset[str],
        sessions: SessionEnds = (),
    ) -> None:
        self._ends_with, self._servers = ends_with, servers
        self._sessions = dict(sessions)
        self._faults = faults(history) if self._ends_with == "connection" else []
        self._cuts: dict[str | None, list[tuple[int, float]]] = {}
        self._kills = kills(history)
        self._unproved = _unproved_kills(history)
        self._lives = _lives(history)

    @property
    def by_connection(self) -> bool:
        """Return whether a grant lasts as long as its client's connection, whatever its lease."""
        return self._ends_with == "connection"

    def of(self, grant: Op) -> End:
        """Return when the holder of this grant departed: closed, died or disappeared."""
        life = self._lives[grant.process]
        # A close at the instant of a kill may still have reached the service, so check it first.
        ends = [end for end in (_closed(grant, life), self._death(grant, life)) if end is not None]
        return first(ends or self._unknown(grant, life) or self._maybe(grant, life))

    def service_may_end(self, asked: Op, gone: End, lost: float, extended: int) -> float:
        """Return when (ns) the service may have ended this grant early at the earliest, its lease
        still running.

        `asked` is the acquire's invocation; `gone` is the result of `of` for its holder; `lost` is
        when its loss was reported, because a connection may break without a `close`; `extended` is
        the invocation of its last extend that was answered ok, else of the acquire.
        """
        if self._ends_with == "connection":
            return min(gone.earliest, lost, self._disconnected(asked, extended))
        closed = self._ends_with == "close" and gone.by in ("close", "gone")
        return gone.earliest if closed else FOREVER

    def _death(self, grant: Op, life: _Life) -> End | None:
        """Return the end by death: a killed process lived until the kill in the receipt.

        One that crashed was last seen alive by its own last op.
        """
        kill = self._kills.get(grant.process)
        if kill is not None and (life.died is None or life.died >= kill[0]):
            ordered, proved = kill
            return End(max(life.seen, ordered), max(life.seen, proved), "death")
        if life.died is None:
            return None
        return End(min(life.seen, life.died), life.died, "death")

    def _unknown(self, grant: Op, life: _Life) -> list[End]:
        """Return the end of a process whose op ended `info`; the history may not record its close.

        It may have closed during that op, which counts if a close ends its grants.
        """
        if life.unsure is None:
            return []
        if self._ends_with == "lease":
            return [End(life.seen, life.seen, "gone")]
        return [End(max(life.unsure, grant.time), life.seen, "gone")]

    def _maybe(self, grant: Op, life: _Life) -> list[End]:
        """Return the end by a kill without proof, after which the process did nothing."""
        return [
            End(max(life.seen, kill.ordered), FOREVER, "doubt")
            for kill in self._unproved
            if kill.hits(grant) and life.seen <= kill.tried
        ]

    def _disconnected(self, asked: Op, extended: int) -> float:
        """Return when, after it had asked, a fault may have cut this client off from a server or
        stopped a server.

        That may precede the arrival of its grant, which then came late. A cut before it asked did
        not prevent the answer. An extend that was answered ok dismisses earlier cuts. Where the
        ends of its sessions are known, no other moment counts.
        """
        known = self._sessions.get(str(asked.node))
        if known is not None:
            return next((at for at in known if at >= extended), FOREVER)
        if asked.node not in self._cuts:
            self._cuts[asked.node] = sorted(
                (fault.start, fault.end if fault.healed and fault.end is not None else FOREVER)
                for fault in self._faults
                if fault.disconnects(asked.node, self._servers)
            )
        cuts = self._cuts[asked.node]
        for place in range(bisect_left(cuts, (asked.time,)), len(cuts)):
            start, end = cuts[place]
            if end >= extended:
                return start
        return FOREVER


def _closed(grant: Op, life: _Life) -> End | None:
    for op in life.closes:
        if op.index > grant.index:
            return End(op.time, op.time, "close")
    return None


def _lives(history: History) -> dict[int | str, _Life]:
    found: dict[int | str, _Life] = {}
    invoked: dict[int | str, int] = {}
    for op in history.clients():
        process = op.process
        life = found.get(process)
        if life is None:
            life = found[process] = _Life(op.time)
        if op.type == "info" and op.error and op.error[0] in DEAD:
            life.died = op.time if life.died is None else life.died
            continue
        life.seen = op.time
        if op.type == "invoke":
            invoked[process] = op.time
            if op.f == "close":
                life.closes.append(op)
        elif op.type == "info" and op.f not in SPONTANEOUS and life.unsure is None:
            life.unsure = invoked.get(process, op.time)
    return found


class _Kill(Struct, frozen=True, gc=False):
    """A kill that no receipt proves: of these processes, or if it names none, of one of these
    nodes. `ordered`, `tried`: between these times, if ever."""

    processes: frozenset[int | str]
    nodes: frozenset[str]
    ordered: int
    tried: float

    def hits(self, op: Op) -> bool:
        return op.process in self.processes if self.processes else op.node in self.nodes


def _unproved_kills(history: History) -> list[_Kill]:
    found: dict[str, _Kill] = {}
    for op in history.nemesis():
        value, name = op.value, str(op.value.get("fault", op.f))
        if not value.get("forgets"):  # an op that ends a fault never says so
            continue
        receipt = value.get("receipt") or {}
        if op.type == "invoke":
            nodes = frozenset(value.get("impairs") or ())
            found[name] = _Kill(frozenset(), nodes, op.time, FOREVER)
        elif receipt.get("proved"):
            found.pop(name, None)
        elif name in found:
            named = frozenset(receipt.get("processes", ()))
            found[name] = _Kill(named, found[name].nodes, found[name].ordered, op.time)
    return list(found.values())


def kills(history: History) -> dict[int | str, tuple[int, int]]:
    """Return for each process in a kill receipt when the kill was ordered, and when it was seen
    dead."""
    found: dict[int | str, tuple[int, int]] = {}
    ordered: dict[str, int] = {}
    for op in history.nemesis():
        if op.value.get("phase") == "end":
            continue
        name = str(op.value.get("fault", op.f))
        if op.type == "invoke":
            ordered[name] = op.time
            continue
        receipt = op.value.get("receipt") or {}
        if receipt.get("proved"):
            for process in receipt.get("processes", ()):
                found.setdefault(process, (ordered.get(name, op.time), op.time))
    return found
