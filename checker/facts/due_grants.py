"""Due grants: the spans of a run in which a lock had to be granted, and whether it was.

Waits are the spans that a run tested (waits.py). Dead times, and clients that are shut out or
turned away, blame a lock (dead_time.py, shut_out.py, turned_away.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fencepost.checker.facts.closings import Closings
from fencepost.checker.facts.dead_time import PAUSES_IN_BOUND, DeadTime, DeadTimes
from fencepost.checker.facts.ends import FOREVER, ends_with, kills
from fencepost.checker.facts.faults import Fault, over_time
from fencepost.checker.facts.grant_events import refused, unsent
from fencepost.checker.facts.hindered import Hindered, sent
from fencepost.checker.facts.hold_events import HoldEvents
from fencepost.checker.facts.holds import Hold, lock_of, seconds
from fencepost.checker.facts.obstacles import (
    Obstacles,
    Span,
    impairing,
    kills_clients,
    lease_of,
    left,
    longest_lease,
    spans,
)
from fencepost.checker.facts.shut_out import ShutOut, free_times, shut_out
from fencepost.checker.facts.taken import mode_of, taken, taken_by_faults
from fencepost.checker.facts.turned_away import TurnedAway, turned_away
from fencepost.checker.facts.waits import Wait, Waited
from fencepost.checker.history.history import Call, History, Op

_GONE = ("death", "gone", "close")
"""The ends of holds that their holders did not release."""
_NEVER_HEALED = (
    "A fault was on until the end, and clients asked in vain from {} on: the history does not tell "
    "whether because of it."
)
_UNHEARD = (
    "Clients asked in vain from {} on, until the history ended: the history does not tell whether "
    "because of requests that may have been granted."
)
_DOUBTFUL = (
    "Clients asked for the free lock in vain from {} on, but at the same time: the history does "
    "not tell whether because they refused one another."
)
_LONGER = (
    "A lease that is longer than it was asked for outlasts its holder, and others asked in vain "
    "from {} on: the history ends before that lease does."
)


def waited(
    history: History,
    calls: list[Call],
    found: list[Hold],
    events: HoldEvents,
    given: Mapping[int, int],
    due: DueGrants,
    apart: int,
) -> list[Waited]:
    """Return the locks of a history, each with its holds (of `found`), its acquires (of `calls`),
    and their obstacles. `events`: the extends and releases of each hold; `given`: when holds were
    certainly given back; `apart`: see Waited."""
    asked: dict[str, list[Call]] = {}
    held: dict[str, list[Hold]] = {}
    for call in calls:
        if call.begin.f == "acquire":
            asked.setdefault(lock_of(call.begin.value), []).append(call)
    for hold in found:
        held.setdefault(hold.lock, []).append(hold)
    leases = {lock: longest_lease(mine) for lock, mine in asked.items()}
    free, killed = left(found, events.own, leases, given, due.extended), kills(history)
    notices: dict[int | str, list[Op]] = {}
    for op in history.lost():
        if op.value.get("hold") is None and not (op.error and op.error[0] == "requeued"):
            notices.setdefault(op.process, []).append(op)
    more = apart, history.end_ns, notices
    rows = []
    for lock, mine in asked.items():
        mine_held = held.get(lock, [])
        rows.append(Waited(lock, mine_held, mine, free, given, killed, due.bound, *more))
    return rows


@dataclass
class Judged:
    """What DeadTimes finds for all modes of a lock, and in `dead` the clients that are shut out or
    turned away."""

    dead: list[DeadTime | ShutOut | TurnedAway]
    served: int
    leases: int
    doubtful: float = FOREVER

    def doubt(self) -> str | None:
        """Return why the lock may have been dead although nothing blames it; None if not."""
        return None if self.doubtful == FOREVER else _DOUBTFUL.format(seconds(self.doubtful))


class DueGrants:
    """The spans of this run in which a lock had to be granted."""

    def __init__(
        self, history: History, test: Mapping[str, Any], on: list[Fault], bound: int, apart: int
    ) -> None:
        self.bound = bound + apart
        # How long a message travels at most if nothing holds it back.
        self._delay = bound / PAUSES_IN_BOUND + apart
        self._servers = frozenset(test.get("servers") or ())
        self._majority = len(self._servers) // 2 + 1
        self._promised = bool((test.get("promises") or {}).get("minority"))
        nodes = {node for node in history.nodes() if node is not None}
        clients = frozenset(nodes - self._servers)
        self._end_ns = history.end_ns
        self._impairing = impairing(on, clients)
        self._closings = Closings(history)
        self._faulty, self._on = bool(on), over_time(on)
        # A kill of a client ends at once.
        self._unhealed = [f.start for f in on if f.end is None and not kills_clients(f, clients)]
        self.healed = not self._unhealed
        # Before the clients are ready, no client can be granted a lock.
        self._ready_ns = int(test.get("ready_s", 0) * 1e9)
        self._since = max([self._ready_ns, *(f.start if f.end is None else f.end for f in on)])
        known = [fault for fault in on if fault.impairs is not None]
        # Servers that agree among themselves give locks that end with sessions.
        one_by_one = len(self._servers) > 1 and ends_with(test) == "lease"
        setting = clients, self._servers, self._promised, one_by_one
        self.hindered = Hindered(on, *setting)
        self._known = self.hindered if len(known) == len(on) else Hindered(known, *setting)

    def dead_times(self, lock: Waited, known: bool = False) -> Judged:
        """Find the dead times of a lock. `known`: ignore faults of which nothing is known."""
        hindered = self._known if known else self.hindered
        settings = hindered, self._closings, lock.lease, self._end_ns, self._delay
        found = [
            *taken(lock.found, lock.left, lock.freed, lock.requests, *settings),
            *taken_by_faults(hindered, lock.leases(hindered.one_by_one)),
        ]
        judged = Judged([], 0, 0)
        more = hindered, lock.bound, lock.apart, self._end_ns
        for mode in sorted({mode_of(call) for call, _ in lock.requests}):
            times = DeadTimes(lock.lock, lock.requests, mode, *more)
            judged.dead.extend(times.find(found, self._ready_ns, "From the start"))
            judged.served += times.served
            judged.leases += times.leases
            judged.doubtful = min(judged.doubtful, times.doubtful)
        run = self._ready_ns, self._end_ns
        judged.dead.extend(shut_out(lock, free_times(found, *run), hindered))
        judged.dead.extend(turned_away(lock, found, *run, hindered))
        return judged

    def concerned(self, acquires: list[Call]) -> frozenset[str]:
        """Return the servers, and the clients that ask for a lock; none if not all are known."""
        asking = frozenset(call.begin.node or "" for call in acquires)
        return self._servers | asking if self._servers and "" not in asking else frozenset()

    def extended(self, call: Call) -> float | None:
        """Return by when an extend has arrived that may have taken effect without its holder's
        knowledge; None for any other call. Clients that ask each server by itself may fail for lack
        of answers."""
        failed = call.type == "fail" and not (refused(call) or unsent(call))
        if call.begin.f != "extend" or not (
            call.type == "info" or (failed and self.hindered.one_by_one)
        ):
            return None
        over = (call.end or call.begin).time
        return self.hindered.held_back(sent(call, over, self._closings), self._delay)

    def unanswered(self, lock: Waited) -> Iterator[tuple[int, Span]]:
        """Yield by when each acquire of unknown outcome has arrived, and until when its lease may
        last, with the index of its invocation. One without a lease, or still open, is left out: it
        may arrive, and hold the lock, at any time."""
        for call, one in lock.requests:
            lease = lease_of(call) or lock.lease
            if one.over > one.begin and lease:
                given_up = sent(call, one.over - lease, self._closings)
                arrived = self.hindered.arrived(given_up, self._delay)
                over = self.hindered.settled(one.begin, arrived, self.bound + lease)
                yield call.begin.index, (arrived, over)

    def agree(self, begin: float, end: float) -> bool:
        """Return whether no fault was on between these times, and the servers agree among
        themselves: then of clients that ask for a free lock one is granted it."""
        return not (self.hindered.one_by_one or self._on.count(begin, end))

    def stuck(self, lock: Waited) -> str | None:
        """Return why clients may have asked in vain until the end, for longer than the bound: for a
        lock behind a fault that was never healed, behind requests of unknown outcome, or behind a
        lease that is longer than it was asked for and outlasts its holder. None if they did not."""
        if self._unhealed:
            since = lock.in_vain_since(max(self._unhealed))
            return None if since is None else _NEVER_HEALED.format(seconds(since))
        since = lock.in_vain_since(self._since)
        if since is not None:
            return _UNHEARD.format(seconds(since))
        since = lock.in_vain_since(self._since, lock.as_asked())
        return None if since is None else _LONGER.format(seconds(since))

    def waits(self, lock: Waited) -> Iterator[Wait]:
        obstacles = Obstacles([*spans(self._impairing, lock.lease), *lock.deaths])
        if self.healed:
            yield self._after_heal(lock, obstacles)
        yield from self._after_holders(lock, obstacles)
        if self._promised:
            yield from self._minorities(lock)

    def _after_heal(self, lock: Waited, obstacles: Obstacles) -> Wait:
        why = "After the last fault was healed" if self._faulty else "From the start"
        due = self._since + lock.lease
        return lock.wait("heal", why, self._since, due, obstacles)

    def _after_holders(self, lock: Waited, obstacles: Obstacles) -> Iterator[Wait]:
        for hold in lock.found:
            if hold.ended_by in _GONE and hold.strict_end < hold.deadline:
                why = f"After {hold.who} disappeared with hold {hold.name} at "
                why += seconds(hold.strict_end)
                due = max(hold.gone_by, lock.left[hold.index])
                yield lock.wait("holder", why, hold.strict_end, due, obstacles, own=hold)

    def _minorities(self, lock: Waited) -> Iterator[Wait]:
        """Yield every span between two changes of the impaired nodes that is long enough to
        judge."""
        others = [f for f in self._impairing if not (f.impairs or set()) <= self._servers]
        obstacles = Obstacles([*spans(others, lock.lease), *lock.deaths])
        for start, end, down in self._spans():
            if end - start < lock.lease + lock.bound:
                continue
            why = f"With {', '.join(sorted(down))} impaired from {seconds(start)}"
            yield lock.wait("minority", why, start, start + lock.lease, obstacles, until=end)

    def _spans(self) -> Iterator[tuple[int, int, set[str]]]:
        """Yield the spans with the same servers impaired: at least one, and no majority."""
        begun: dict[int, list[Fault]] = {}
        over: dict[int, list[Fault]] = {}
        for fault in self._impairing:
            begun.setdefault(fault.start, []).append(fault)
            if fault.end is not None:
                over.setdefault(fault.end, []).append(fault)
        impaired: Counter[str] = Counter()
        for start, end in pairwise(sorted({self._end_ns} | begun.keys() | over.keys())):
            for fault in begun.get(start, ()):
                impaired.update((fault.impairs or frozenset()) & self._servers)
            for fault in over.get(start, ()):
                impaired.subtract((fault.impairs or frozenset()) & self._servers)
            down = {server for server, many in impaired.items() if many > 0}
            if down and len(self._servers) - len(down) >= self._majority:
                yield start, end, down
