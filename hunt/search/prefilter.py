"""Finds the signs of a violation (checker/signs.py) in a simulated run's record, in one pass.

The checkers take milliseconds for a history, and a run takes less than one. So only the checkers
that suspect a run by its signs judge it (`Checker.suspect`). They may suspect a sound run, but must
not pass a broken one: tests/hunt/search/test_prefilter.py compares the suspicions with the verdicts
on random runs, and a hunt judges every SAMPLE-th run in any case.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from fencepost.checker.facts.grant_events import NOT_HELD, UNREACHABLE
from fencepost.checker.signs import (
    GRANTED_BESIDE,
    GRANTED_EARLY,
    GRANTED_LATE,
    REFUSED_HOLDER,
    TOKEN_FELL,
    VERSION_JUMPED,
    WAITED,
    WROTE_LATE,
)
from fencepost.hunt.search.long_waits import waited_long
from fencepost.hunt.sim.record import Row
from fencepost.workloads.contract.lock import Failed

SAMPLE = 500
REFUSED = "refused"
"""The error kind of a write that the guard refused."""
_OF_A_HOLD = frozenset(("release", "extend", "lost", "renewed"))
_AVAILABLE = frozenset(("minority",))
"""Promises of nothing but to grant the lock in time."""


@dataclass(slots=True)
class _Hold:
    process: Any
    deadline: float
    token: int | None
    number: int
    ended: bool = False


def signs(
    rows: list[Row],
    came_back: bool,
    bound_ns: int,
    promises: Set[str] = frozenset(),
    keeps_on: bool = False,
) -> set[str]:
    """Return the signs that this record shows.

    `promises`: those of the lock (workloads/contract/locktype.py). `keeps_on`: a failed release
    does not end a hold.

    `linearizable` needs few signs: if no grant was given during another client's lease, there is an
    order that respects every lease. In it each grant takes effect at its answer, each release when
    it is sent or at the end of the lease, and ops that failed or were not answered have no effect.
    `ownership` needs a hold that ended early: another grant during its lease, or a refusal to its
    own holder.
    """
    reader = _Reader(bound_ns, promises, keeps_on)
    asked, by_name = reader.asked, reader.by_name
    for time, process, type, f, value, error, node, _step in rows:
        if node is None:  # an op of the nemesis
            continue
        if f == "acquire":
            if type == "invoke":
                asked[process] = time
            else:
                reader.acquire(time, process, type, value)
        elif f == "write":
            if type != "invoke":
                reader.write(process, type, value, error)
        elif f == "read":
            if type == "ok" and value["version"] != reader.version:
                # The version is higher if an unanswered write has arrived: its client may have
                # died, and the record does not mention it again.
                reader.found.add(VERSION_JUMPED)
        elif f in _OF_A_HOLD:
            hold = by_name.get((process, value.get("hold")))
            if hold is not None:
                reader.change(hold, time, type, f, value, error)
    late = not came_back or reader.late or (rows and rows[-1][0] - reader.granted_last > bound_ns)
    # `liveness` judges other promises as well, which may be broken in such a run.
    if late and (promises - _AVAILABLE or waited_long(rows, bound_ns)):
        reader.found.add(WAITED)
    return reader.found


class _Reader:
    """Reads a record, event by event. `found`: the signs so far; `late`: the lock was not granted
    for longer than the bound; the rest is what later events are compared with. The settings are
    those of `signs`."""

    def __init__(self, bound_ns: int, promises: Set[str], keeps_on: bool) -> None:
        self.bound_ns, self.keeps_on = bound_ns, keeps_on
        self.fifo, self.refuses = "fifo" in promises, "true_refusals" in promises
        self.found: set[str] = set()
        self.late = False
        self.holds: list[_Hold] = []
        self.by_name: dict[Any, _Hold] = {}
        self.asked: dict[Any, int] = {}
        self.highest: int | None = None
        self.granted_last = self.last_asked = 0
        # Whether a request has had no answer, so that the lock may be taken without a hold.
        self.unheard = False
        # Of the resource: its version, the last hold that wrote and its token, and whether a write
        # has had no answer.
        self.version, self.last_writer = 0, -1
        self.last_token: int | None = None
        self.unsure = False

    def acquire(self, time: int, process: Any, type: str, value: Any) -> None:
        if type == "ok":
            self._grant(time, process, value)
        elif type == "info":
            self.unheard = True
        elif self.refuses and not self.unheard:
            last = self.holds[-1] if self.holds else None
            if last is None or last.ended or last.deadline < self.asked[process]:
                self.found.add(WAITED)

    def _grant(self, time: int, process: Any, value: Any) -> None:
        found, since = self.found, self.asked[process]
        until = float("inf") if value["deadline"] is None else value["deadline"]
        for hold in self.holds:
            if not hold.ended:
                found.add(GRANTED_BESIDE)
                if hold.deadline >= time:
                    found.add(GRANTED_EARLY)
        token = value["token"]
        if token is not None:
            if self.highest is not None and token <= self.highest:
                found.add(TOKEN_FELL)
            self.highest = token if self.highest is None else max(self.highest, token)
        if self.fifo and since < self.last_asked:
            found.add(WAITED)
        if time - self.granted_last > self.bound_ns:
            self.late = True
        self.last_asked, self.granted_last = since, time
        hold = _Hold(process, until, token, len(self.holds))
        self.holds.append(hold)
        self.by_name[process, value["hold"]] = hold
        if until <= time:
            found.add(GRANTED_LATE)

    def change(
        self, hold: _Hold, time: int, type: str, f: str, value: Any, error: Failed | None
    ) -> None:
        """Read an event that ends a hold, prolongs it, or fails to."""
        within = time <= hold.deadline
        if f == "release":
            if type != "fail":
                hold.ended = type != "invoke" or not self.keeps_on
            elif error is not None and error.kind == UNREACHABLE:
                # It had no effect, so grants since it was sent were next to this hold.
                hold.ended = False
                if self._granted_since(hold):
                    self.found |= {GRANTED_EARLY, GRANTED_BESIDE}
            elif _refused(error) and within:
                self.found.add(REFUSED_HOLDER)
        elif f == "extend":
            if type == "ok":
                if time >= hold.deadline or self._granted_since(hold):
                    self.found.add(GRANTED_EARLY)
                if value["deadline"] is not None:
                    hold.deadline = value["deadline"]
                    if value["deadline"] <= time:
                        self.found.add(GRANTED_LATE)
            elif type == "info" and within:
                self.found.add(GRANTED_EARLY)
            elif type == "fail" and _refused(error) and within:
                self.found.add(REFUSED_HOLDER)
        elif f == "renewed":
            if time >= hold.deadline:
                self.found.add(GRANTED_EARLY)
            hold.deadline = value["deadline"]
        else:
            if within:
                self.found.add(GRANTED_EARLY)
            hold.ended = True

    def _granted_since(self, hold: _Hold) -> bool:
        return len(self.holds) > hold.number + 1

    def write(self, process: Any, type: str, value: Any, error: Failed | None) -> None:
        if type == "info":
            self.unsure = True
        elif type == "fail" and error is not None and error.kind == REFUSED:
            hold = self.by_name.get((process, value["hold"]))
            token = None if hold is None else hold.token
            if token is not None and (self.last_token is None or token >= self.last_token):
                self.found.add(WROTE_LATE)  # or the guard was wrong
        if type != "ok":
            return
        if value["stored"] != self.version + 1 or value["version"] != self.version or self.unsure:
            self.found.add(VERSION_JUMPED)
        self.version = value["stored"]
        hold = self.by_name.get((process, value["hold"]))
        if hold is None:
            return
        if hold.number < self.last_writer:
            self.found.add(WROTE_LATE)
        self.last_writer = max(self.last_writer, hold.number)
        if hold.token is not None:
            if self.last_token is not None and hold.token < self.last_token:
                self.found.add(WROTE_LATE)
            self.last_token = max(hold.token, self.last_token or hold.token)


def _refused(error: Failed | None) -> bool:
    """Return whether the error shows that the holder's hold has ended."""
    return error is not None and error.kind == NOT_HELD
