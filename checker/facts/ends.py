"""When a hold may have ended: the one place that knows.

A grant ends in three ways. Its holder gives it up: it releases the lock, is told that the lock is
lost, closes its connections, or is gone. Its lease runs out (holds.py). Or the service ends it
early, which is right only for some locks; the test says for which (`lock.ends_with`):

    lease        only a release that reached the service, or time, ends a grant (the default)
    close        also its client's `close`, from the invocation on (etcd, ZooKeeper)
    connection   also the loss of its connection: its client killed or cut off, or the server
                 gone (PostgreSQL)

An end is seldom known to the nanosecond, and rounding it in either direction blames somebody. So
an end has two sides. Before `earliest` the client certainly held on: a second grant by then is a
double grant. At `latest` it had certainly let go: from then on the lock must come back.
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
"""The error kinds with which the harness completes what a dead worker had begun."""


def ends_with(test: Mapping[str, Any] | None) -> str:
    """How a grant of the test's lock may end early.

    Raises:
        ValueError: the test names a way that there is not.
    """
    lock = (test or {}).get("lock")
    said = lock.get("ends_with", "lease") if isinstance(lock, Mapping) else "lease"
    if said not in ENDS_WITH:
        raise ValueError(f"lock.ends_with {said!r}: choose one of {', '.join(ENDS_WITH)}")
    return str(said)


class End(Struct, frozen=True, gc=False):
    """The end of a hold, in ns since the test's start; `FOREVER` where it was never seen.

    `by` is "release", "lost", "close", "death" (killed or crashed), "gone" (an op of its process
    ended `info`) or "never".
    """

    earliest: float
    latest: float
    by: str


NEVER = End(FOREVER, FOREVER, "never")


def first(ends: Iterable[End]) -> End:
    """The end of a hold that each of these would have ended."""
    soonest, latest = NEVER, FOREVER
    for end in ends:
        if (end.earliest, end.latest) < (soonest.earliest, soonest.latest):
            soonest = end
        if end.latest < latest:
            latest = end.latest
    return soonest if soonest.latest == latest else End(soonest.earliest, latest, soonest.by)


@dataclass(slots=True)
class _Life:
    """What a process did itself: its last op's time, when its first op that ended `info` was
    invoked, and when it closed. `died`: when the harness wrote that it was gone."""

    seen: int
    unsure: int | None = None
    died: int | None = None
    closes: list[Op] = field(default_factory=list)


class Departures:
    """When the clients of a history were gone, by process."""

    def __init__(self, history: History, ends_with: str, servers: frozenset[str]) -> None:
        self._ends_with, self._servers = ends_with, servers
        self._faults = faults(history) if self._ends_with == "connection" else []
        self._cuts: dict[str | None, list[int]] = {}
        self._kills = kills(history)
        self._lives = _lives(history)

    def of(self, grant: Op) -> End:
        """When the holder of this grant was gone, as a client: closed, dead or gone."""
        life = self._lives[grant.process]
        # Close first: one that began in the very instant of a kill may have reached the service.
        ends = [end for end in (_closed(grant, life), self._death(grant, life)) if end is not None]
        return first(ends or self._unknown(grant, life))

    def service_may_end(self, asked: Op, gone: End, lost: float) -> float:
        """From when on (ns) the service may have ended this grant early, its lease still running.

        `asked` is the acquire's invocation; `gone` is what `of` says of its holder; `lost` is when
        that was told that it is lost: a connection may then be gone without a `close`.
        """
        left = gone.earliest if gone.by in ("close", "gone") else FOREVER
        if self._ends_with == "connection":
            dead = gone.earliest if gone.by == "death" else FOREVER
            return min(left, lost, dead, self._disconnected(asked))
        return left if self._ends_with == "close" else FOREVER

    def _death(self, grant: Op, life: _Life) -> End | None:
        """A process that was killed lived until the kill, which says so in its receipt.

        One that died by itself was last seen alive by its own last op.
        """
        kill = self._kills.get(grant.process)
        if kill is not None and (life.died is None or life.died >= kill[0]):
            ordered, proved = kill
            return End(max(life.seen, ordered), max(life.seen, proved), "death")
        if life.died is None:
            return None
        return End(min(life.seen, life.died), life.died, "death")

    def _unknown(self, grant: Op, life: _Life) -> list[End]:
        """A process whose op ended `info` is gone, and a history may not say that it closed.

        It may then have closed while that op was under way, which counts where a close ends its
        grants.
        """
        if life.unsure is None:
            return []
        if self._ends_with == "lease":
            return [End(life.seen, life.seen, "gone")]
        return [End(max(life.unsure, grant.time), life.seen, "gone")]

    def _disconnected(self, asked: Op) -> float:
        """When a fault cut this client off from a server after it had asked, or took a server away,
        as far as faults tell.

        That may be before its grant arrived, which then came late. What was cut before it asked
        did not keep it from being answered.
        """
        if asked.node not in self._cuts:
            self._cuts[asked.node] = sorted(
                fault.start
                for fault in self._faults
                if fault.disconnects(asked.node, self._servers)
            )
        cuts = self._cuts[asked.node]
        place = bisect_left(cuts, asked.time)
        return cuts[place] if place < len(cuts) else FOREVER


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


def kills(history: History) -> dict[int | str, tuple[int, int]]:
    """When each process that a receipt names was ordered to die, and when it was seen dead."""
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
