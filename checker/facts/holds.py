"""Holds: each grant of a lock to one process, and when it ended.

Two meanings are kept apart, because the debate turns on them. A *strict* hold lasts until its
holder gives it up: the invocation of its release, `lost`, its client's `close`, or the end of its
process. A release that reached no server gives nothing back: the hold is strict until the last one
of them, if its holder does nothing more with it, and the lease runs on. A *believed* hold lasts no
longer than its lease. ends.py defines when each end may have been.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from fencepost.checker.facts.ends import (
    FOREVER,
    Departures,
    SessionEnds,
    ends_with,
    first,
    session_ends,
)
from fencepost.checker.facts.grant_events import GrantEvents, lock_of
from fencepost.checker.facts.second_grants import doubled, ended_together
from fencepost.checker.history.history import Call, History, Op

__all__ = ["FOREVER", "Hold", "holds", "lock_of", "seconds"]


class Hold(Struct, frozen=True, gc=False):
    """One grant. Times are in ns since the test's start; `FOREVER` is an end that was never seen.

    asked, start: the acquire's invocation and its answer.
    strict_end, gone_by: until when the holder certainly held the lock, and by when it had
        certainly given it up.
    given_back: strict_end, but for a release that reached no server: from then on the service may
        know that its holder gave the lock up. No lease outlasts a hold without a deadline, so it is
        strict_end there.
    may_end: when the service may have ended the grant early at the earliest, or its process may
        have ended it with its next request; FOREVER if only a release or time can.
    other_end: from when on the end of another hold of its process may have ended it
        (second_grants.py).
    leases: [from, until) each; more than one if an extension came after the lease expired.
    furthest: until when the last lease may run, if no extend of unknown outcome shortened it;
        FOREVER if the hold lasts as long as its client's connection.
    renewals: (time, deadline) of each renewal in the background, in order of time.
    extends: the positions in the history of its extends that were answered ok.
    granted_by: the servers that granted it, if its client reports them.
    lost: when its holder first reported it lost, or learned so by a refused extend if it ends with
        a connection; FOREVER if it never did.
    assumed: whether its client filled in the deadline of the grant, which the lock did not name.
    ended_by: see ends.End.
    asked_index, index: the positions of the acquire's invocation and answer in the history.
    """

    lock: str
    name: str
    process: int | str
    node: str | None
    token: int | None
    ttl: int | None
    asked: int
    start: int
    strict_end: float
    leases: tuple[tuple[int, float], ...]
    ended_by: str
    index: int
    asked_index: int = -1
    shared: bool = False
    gone_by: float = FOREVER
    given_back: float = FOREVER
    may_end: float = FOREVER
    other_end: float = FOREVER
    renewals: tuple[tuple[int, float], ...] = ()
    extends: tuple[int, ...] = ()
    furthest: float = FOREVER
    granted_by: tuple[str, ...] = ()
    lost: float = FOREVER
    assumed: bool = False

    @property
    def deadline(self) -> float:
        """Return when the last lease expires; FOREVER for a lock whose lease the client cannot
        see."""
        return self.leases[-1][1]

    @property
    def believed(self) -> list[tuple[int, float]]:
        """Return when the holder believed, rightly as far as the service promised: each lease
        [from, until), cut off at `given_back`, `may_end` and
        `other_end`.

        A lease that had expired before its grant arrived was never believed; one given up in the
        same instant (stamps may be coarse) was believed for that instant.
        """
        over = min(self.given_back, self.may_end, self.other_end)
        if len(self.leases) == 1:  # the usual case, and a fast path because this is called often
            start, end = self.leases[0]
            return [(start, min(end, over))] if start < end and start <= over else []
        return [
            (start, min(end, over)) for start, end in self.leases if start < end and start <= over
        ]

    @property
    def believed_end(self) -> float:
        found = self.believed
        return found[-1][1] if found else self.start

    @property
    def who(self) -> str:
        return f"{self.node or 'a client'} (process {self.process})"


def seconds(time_ns: float) -> str:
    """Format a time for people: '12.345 s'."""
    return "the end of the run" if time_ns == FOREVER else f"{time_ns / 1e9:.3f} s"


def holds(history: History, test: Mapping[str, Any] | None = None) -> list[Hold]:
    """Return every hold in the history, in order of grant.

    The test's `failed_release` defines the effect of a failed release: "ended" (the default: the
    hold has ended, by it or before it) or "nothing" (the hold continues).
    """
    known = facts(test)
    keeps_on, ends, servers, counts, sessions = known

    def found() -> list[Hold]:
        events = GrantEvents(history, keeps_on)
        departures = Departures(history, ends, servers, sessions)
        grants = [_hold(call, events, departures) for call in events.grants]
        grants.sort(key=attrgetter("start", "index"))
        return grants if counts else _as_one(grants)

    return history.once(("holds", known), found)


def facts(
    test: Mapping[str, Any] | None,
) -> tuple[bool, str, frozenset[str], bool, SessionEnds]:
    """Return the facts of the test that holds depend on: whether a hold continues after a failed
    release, how it may end early, the servers, whether the lock promises to count the grants of
    one process, and when sessions ended, if that is known."""
    settings = test or {}
    keeps_on = settings.get("failed_release", "ended") == "nothing"
    counts = bool((settings.get("promises") or {}).get("reentrant"))
    servers = frozenset(settings.get("servers") or ())
    return keeps_on, ends_with(test), servers, counts, session_ends(test)


def _as_one(grants: list[Hold]) -> list[Hold]:
    """Return the holds of a lock that may give a holder its own hold again."""
    early: dict[int, float] = {}
    for mine in doubled(grants):
        early |= ended_together(mine)
    if not early:
        return grants
    return [
        replace(hold, other_end=early[hold.index]) if hold.index in early else hold
        for hold in grants
    ]


def _hold(call: Call, events: GrantEvents, departures: Departures) -> Hold:
    assert call.end is not None
    value, grant = call.value, call.end
    place = grant.index
    gone = departures.of(grant)
    given_up = (*events.ends.get(place, ()), gone)
    end = first(given_up)
    lost = min((one.earliest for one in given_up if one.by == "lost"), default=FOREVER)
    told = min((one.earliest for one in given_up if one.by == "refused"), default=FOREVER)
    told = told if departures.by_connection else FOREVER
    longer = events.longer.get(place)
    # Jepsen's own histories name no holds: use the grant's position as its name.
    name = value.get("hold")
    leases = _leases(grant, longer or ())
    heard = min((one.earliest for one in given_up if one.latest < FOREVER), default=FOREVER)
    furthest = (_leases(grant, events.certain(place)) if longer else leases)[-1][1]
    return Hold(
        lock=lock_of(value),
        name=str(name if name is not None else place),
        process=call.begin.process,
        node=call.begin.node,
        token=value.get("token"),
        ttl=value.get("ttl"),
        asked=call.begin.time,
        start=grant.time,
        strict_end=end.earliest,
        leases=leases,
        ended_by=end.by,
        index=place,
        asked_index=call.begin.index,
        shared=value.get("mode") == "shared",
        gone_by=end.latest,
        given_back=min(heard, told) if leases[-1][1] < FOREVER else end.earliest,
        may_end=min(
            departures.service_may_end(call.begin, gone, lost, _extended(call, longer)),
            events.asked_again.get(place, FOREVER),
        ),
        renewals=_renewals(longer) if longer else (),
        extends=tuple(op.index for op in longer if op.f == "extend" and op.type == "ok")
        if longer
        else (),
        furthest=FOREVER if departures.by_connection else furthest,
        granted_by=tuple(value.get("granted_by") or ()),
        lost=min(lost, told),
        assumed=value.get("assumed") is True,
    )


def _extended(acquire: Call, longer: Iterable[Op] | None) -> int:
    """Return when the last request was sent that was answered ok: an extend, else the acquire."""
    sent = begun = acquire.begin.time
    for op in longer or ():
        if op.f == "extend" and op.type == "invoke":
            begun = op.time
        elif op.f == "extend" and op.type == "ok":
            sent = begun
    return sent


def _renewals(longer: Iterable[Op]) -> tuple[tuple[int, float], ...]:
    return tuple(
        (op.time, float(op.value["deadline"]))
        for op in longer
        if op.f == "renewed" and op.value.get("deadline") is not None
    )


def _leases(grant: Op, longer: Iterable[Op]) -> tuple[tuple[int, float], ...]:
    """Return the leases of a grant. `longer` are the ops that may have changed its deadline:
    extends with their invocations, and renewals, in order.

    A client that asks for a shorter lease counts on no more than that from then on.
    """
    deadline = grant.value.get("deadline")
    given = grant.time, FOREVER if deadline is None else float(deadline)
    if not longer:
        return (given,)
    leases = [given]
    for op in longer:
        start, end = leases[-1]
        if op.f == "extend" and op.type != "ok":
            ttl = op.value.get("ttl")
            if op.type == "invoke" and ttl is not None and op.time <= end < FOREVER:
                leases[-1] = (start, min(end, float(op.time + ttl)))
        elif op.value.get("deadline") is not None:
            later = float(op.value["deadline"])
            leases[-1:] = [(start, later)] if op.time <= end else [leases[-1], (op.time, later)]
    return tuple(leases)
