"""Finds the signs of a violation (checker/signs.py) in a simulated run's record, in one pass.

The checkers take milliseconds for a history, and a run takes less than one. So only the checkers
that suspect a run by its signs judge it (`Checker.suspect`). They may suspect a sound run, but must
not pass a broken one: tests/hunt/search/test_prefilter.py compares the suspicions with the verdicts
on random runs, and a hunt judges every SAMPLE-th run in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fencepost.checker.facts.grant_events import NOT_HELD, UNREACHABLE
from fencepost.checker.history.history import NEMESIS
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
from fencepost.hunt.sim.record import Row
from fencepost.workloads.contract.lock import Failed

SAMPLE = 500
REFUSED = "refused"
"""The error kind of a write that the guard refused."""


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
    fifo: bool,
    keeps_on: bool = False,
    refuses: bool = False,
) -> set[str]:
    """Return the signs that this record shows.

    `fifo`: the lock promises to grant in order. `keeps_on`: a failed release does not end a hold.
    `refuses`: the lock promises to refuse only while another client holds it.

    `linearizable` needs few signs: if no grant was given during another client's lease, there is an
    order that respects every lease. In it each grant takes effect at its answer, each release when
    it is sent or at the end of the lease, and ops that failed or were not answered have no effect.
    `ownership` needs a hold that ended early: another grant during its lease, or a refusal to its
    own holder.
    """
    found: set[str] = set()
    if not came_back:
        found.add(WAITED)
    holds: list[_Hold] = []
    by_name: dict[Any, _Hold] = {}
    asked: dict[Any, int] = {}
    highest, granted_last, last_asked = None, 0, 0
    version, last_writer, last_token = 0, -1, None
    unsure = unheard = False
    for time, process, type, f, value, error, _node, _step in rows:
        if process == NEMESIS:
            continue
        if f == "acquire":
            if type == "invoke":
                asked[process] = time
                continue
            if type != "ok":
                if type == "info":
                    unheard = True
                elif refuses and not unheard:
                    since = asked[process]
                    if not holds or holds[-1].ended or holds[-1].deadline < since:
                        found.add(WAITED)
                continue
            deadline = value["deadline"]
            until = float("inf") if deadline is None else deadline
            since = asked[process]
            for hold in holds:
                if not hold.ended:
                    found.add(GRANTED_BESIDE)
                    if hold.deadline >= time:
                        found.add(GRANTED_EARLY)
            token = value["token"]
            if token is not None:
                if highest is not None and token <= highest:
                    found.add(TOKEN_FELL)
                highest = token if highest is None else max(highest, token)
            if fifo and since < last_asked:
                found.add(WAITED)
            last_asked = since
            if time - granted_last > bound_ns:
                found.add(WAITED)
            granted_last = time
            hold = _Hold(process, until, token, len(holds))
            holds.append(hold)
            by_name[process, value["hold"]] = hold
            if until <= time:
                found.add(GRANTED_LATE)
        elif f in ("release", "extend", "lost", "renewed"):
            name = value.get("hold")
            named = by_name.get((process, name))
            if named is None:
                continue
            if f == "release":
                if type != "fail":
                    named.ended = type != "invoke" or not keeps_on
                elif error is not None and error.kind == UNREACHABLE:
                    named.ended = False  # it had no effect
                elif _refused(error) and time <= named.deadline:
                    found.add(REFUSED_HOLDER)
                elif error is not None and error.kind == UNREACHABLE:
                    named.ended = False
                    if len(holds) > named.number + 1:
                        found |= {GRANTED_EARLY, GRANTED_BESIDE}
            elif f == "extend":
                if type == "ok":
                    if time >= named.deadline or len(holds) > named.number + 1:
                        found.add(GRANTED_EARLY)
                    if value["deadline"] is not None:
                        named.deadline = value["deadline"]
                        if value["deadline"] <= time:
                            found.add(GRANTED_LATE)
                elif type == "info" and time <= named.deadline:
                    found.add(GRANTED_EARLY)
                elif type == "fail" and _refused(error) and time <= named.deadline:
                    found.add(REFUSED_HOLDER)
            elif f == "renewed":
                if time >= named.deadline:
                    found.add(GRANTED_EARLY)
                named.deadline = value["deadline"]
            else:
                if time <= named.deadline:
                    found.add(GRANTED_EARLY)
                named.ended = True
        elif f == "write":
            if type == "ok":
                named = by_name.get((process, value["hold"]))
                if value["stored"] != version + 1 or value["version"] != version or unsure:
                    found.add(VERSION_JUMPED)
                version = value["stored"]
                if named is not None:
                    if named.number < last_writer:
                        found.add(WROTE_LATE)
                    last_writer = max(last_writer, named.number)
                    if named.token is not None:
                        if last_token is not None and named.token < last_token:
                            found.add(WROTE_LATE)
                        last_token = max(named.token, last_token or named.token)
            elif type == "info":
                unsure = True
            elif type == "fail" and error is not None and error.kind == REFUSED:
                named = by_name.get((process, value["hold"]))
                token = None if named is None else named.token
                if token is not None and (last_token is None or token >= last_token):
                    found.add(WROTE_LATE)  # or the guard was wrong
        elif f == "read" and type == "ok" and value["version"] != version:
            # The version is higher if an unanswered write has arrived: its client may have died,
            # and the record does not mention it again.
            found.add(VERSION_JUMPED)
    if rows and rows[-1][0] - granted_last > bound_ns:
        found.add(WAITED)
    return found


def _refused(error: Failed | None) -> bool:
    """Return whether the error shows that the holder's hold has ended."""
    return error is not None and error.kind == NOT_HELD
