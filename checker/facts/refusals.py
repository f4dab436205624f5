"""Refusals of a free lock; part of `liveness`.

A lock on one server can promise to refuse only while another client holds it
(`promises.true_refusals`). A client library that retries by itself breaks that: the reply to its
SET is lost, the second SET finds the key of the first, and the library reports a refusal while its
user has the lock.

To blame the lock takes certainty: from the invocation of the refused acquire to its end, no client
can have had the lock or asked for it. A hold counts from its invocation to the end of its first
release that was answered ok or refused as `not-held`, or to a grant of another process in conflict
with it that was asked for after its own grant, whichever is earlier. No lease ends it, because its
holder does not know how long a server keeps a lease.

Clients that ask at the same time and are all refused count as one that was alone, in calm, and if
the servers agree among themselves: the first of them to arrive came to a free lock.

A request that may have been granted without its client receiving the answer counts until it has
certainly arrived and its lease has ended (hindered.py), or until another client was granted the
lock that asked for it after the arrival. Without a lease it counts for ever.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, islice
from operator import itemgetter
from typing import Any

from fencepost.checker.facts.grant_events import refused
from fencepost.checker.facts.holds import FOREVER, Hold, lock_of, seconds
from fencepost.checker.facts.obstacles import Span, lease_of
from fencepost.checker.facts.taken import mode_of
from fencepost.checker.history.history import Call

_REFUSED = "not-granted"


@dataclass
class Refusals:
    """`judged`: whether an answer could have been shown to be wrong; `untrue`: evidence of those
    that were."""

    judged: bool = False
    untrue: list[dict[str, Any]] = field(default_factory=list)


def refusals(
    acquires: list[Call],
    found: list[Hold],
    events: Mapping[int, Iterable[Call]],
    unanswered: Mapping[int, Span],
    apart: int,
    together: Callable[[float, float], bool],
) -> Refusals:
    """Judge refusals. `acquires` in order of invocation; `events`: the extends and releases of each
    hold, by its index; `unanswered`: by when an acquire of unknown outcome has arrived, and until
    when its lease may last, by the index of its invocation; stamps of two nodes are ordered if they
    are more than `apart` (ns). `together`: whether clients that ask between these times cannot
    refuse one another a free lock."""
    seen = Refusals()
    by_lock: dict[str, list[Call]] = {}
    held: dict[str, list[Hold]] = {}
    for call in acquires:
        by_lock.setdefault(lock_of(call.begin.value), []).append(call)
    for hold in sorted(found, key=lambda hold: hold.start):
        held.setdefault(hold.lock, []).append(hold)
    for lock, mine in by_lock.items():
        found_here = held.get(lock, [])
        asked = list(_until(mine, found_here, unanswered))
        held_here = list(_spans(found_here, events, apart))
        begun = [(call.begin.time, over) for call, over in asked]
        for call in _alone(mine, [*held_here, *begun], apart):
            seen.judged = True
            if was_refused(call):
                seen.untrue.append(_untrue(call))
        for calls in _all_refused(asked, held_here, apart):
            begin, end = _whole(calls)
            if together(begin, end):
                seen.judged = True
                seen.untrue.append(_all_untrue(calls))
    return seen


def _spans(held: list[Hold], events: Mapping[int, Iterable[Call]], apart: int) -> Iterator[Span]:
    """Yield the span in which each hold of a lock may have existed. A grant that was asked for
    before may be older than the hold, and its answer late."""
    any_mode = _Later(held, _process)
    exclusive = _Later((hold for hold in held if not hold.shared), _process)
    for hold in held:
        later = exclusive if hold.shared else any_mode
        over = later.grant(hold.start + apart, hold.process)
        for call in events.get(hold.index, ()):
            ended = call.type == "ok" or refused(call)
            if call.begin.f == "release" and ended and call.end is not None:
                over = min(over, call.end.time)
        yield hold.asked, over


class _Later:
    """The first grant among those asked for after a time, to another process or client than a given
    one. `who` returns that of a hold."""

    def __init__(self, held: Iterable[Hold], who: Callable[[Hold], int | str]) -> None:
        ordered = sorted(held, key=lambda hold: hold.asked)
        self._asked = [hold.asked for hold in ordered]
        # Of the holds from each place on: the first two grants, to different ones.
        self._first: list[list[tuple[float, int | str]]] = [[]]
        for hold in reversed(ordered):
            mine = hold.start, who(hold)
            first = sorted([mine, *self._first[-1]], key=itemgetter(0))
            others = (one for one in first if one[1] != first[0][1])
            self._first.append([first[0], *islice(others, 1)])
        self._first.reverse()

    def grant(self, after: float, who: int | str) -> float:
        rest = self._first[bisect_right(self._asked, after)]
        return next((start for start, other in rest if other != who), FOREVER)


def _until(
    acquires: list[Call], held: list[Hold], unanswered: Mapping[int, Span]
) -> Iterator[tuple[Call, float]]:
    """Yield until when each acquire obstructs others, apart from the hold that it was granted."""
    any_mode = _Later(held, _client)
    exclusive = _Later((hold for hold in held if not hold.shared), _client)
    for call in acquires:
        begin = call.begin
        if call.end is not None and call.type != "info":
            yield call, call.end.time
            continue
        arrived, over = unanswered.get(begin.index, (FOREVER, FOREVER))
        later = exclusive if mode_of(call) == "shared" else any_mode
        yield call, min(over, later.grant(arrived, _who(begin.node, begin.process)))


def _process(hold: Hold) -> int | str:
    return hold.process


def _client(hold: Hold) -> str:
    return _who(hold.node, hold.process)


def _who(node: str | None, process: int | str) -> str:
    return node or f"process {process}"


def _alone(acquires: list[Call], spans: list[Span], apart: int) -> Iterator[Call]:
    """Return the answered acquires during which no other client had the lock or asked for it.
    `spans`: of all acquires and of all holds."""
    spans = sorted(spans)
    begins = [begin for begin, _ in spans]
    # The latest end among the first one, two, ... spans.
    stood = [-FOREVER, *accumulate((over for _, over in spans), max)]
    for call in acquires:
        if call.end is None or call.type == "info":
            continue
        place = bisect_left(begins, call.begin.time)
        # The acquire's own span, and that of the hold that it was granted.
        own = 2 if call.type == "ok" else 1
        after = bisect_left(begins, call.end.time + apart + 1)
        if stood[place] + apart < call.begin.time and after - place == own:
            yield call


def _all_refused(
    asked: Iterable[tuple[Call, float]], held: Iterable[Span], apart: int
) -> Iterator[list[Call]]:
    """Yield the acquires that were open at the same time, one after the other, if there are several
    and all were refused, within their leases, while no hold can have existed. `asked`: each with
    when it ended, in order of invocation; `held`: the spans of the holds."""
    spans = sorted(held)
    begins = [begin for begin, _ in spans]
    stood = [-FOREVER, *accumulate((over for _, over in spans), max)]
    for calls in _open_together(asked, apart):
        # The acquire of a hold that was asked for later is one of these calls, and not refused.
        begin = calls[0].begin.time
        free = stood[bisect_right(begins, begin)] + apart < begin
        if len(calls) > 1 and free and all(map(_refused_in_time, calls)):
            yield calls


def _open_together(asked: Iterable[tuple[Call, float]], apart: int) -> Iterator[list[Call]]:
    group: list[Call] = []
    until = -FOREVER
    for call, over in asked:
        if group and call.begin.time > until + apart:
            yield group
            group = []
        group.append(call)
        until = max(until, over)
    if group:
        yield group


def _whole(calls: Iterable[Call]) -> tuple[float, float]:
    """Return from when until when these calls, which were all answered, were open."""
    times = [op.time for call in calls for op in (call.begin, call.end) if op is not None]
    return min(times), max(times)


def _refused_in_time(call: Call) -> bool:
    """Return whether an acquire was refused before its lease had expired. A library may give back a
    grant that came later, and report a refusal."""
    lease = lease_of(call) or FOREVER
    in_time = call.end is not None and call.end.time - call.begin.time < lease
    return was_refused(call) and in_time


def was_refused(call: Call) -> bool:
    """Return whether an acquire was refused by the lock (`not-granted`)."""
    error = call.end.error if call.end is not None else None
    return call.type == "fail" and bool(error) and error[0] == _REFUSED  # type: ignore[index]


def _untrue(call: Call) -> dict[str, Any]:
    begin, end = call.begin, call.end
    assert end is not None
    return {
        "what": (
            f"{begin.node or 'a client'} (process {begin.process}) asked for the lock from "
            f"{seconds(begin.time)} to {seconds(end.time)} and was refused, though no other "
            "client held it or asked for it."
        ),
        "time_ns": end.time,
        "valid": False,
        "ops": [begin.index, end.index],
    }


def _all_untrue(calls: list[Call]) -> dict[str, Any]:
    begin, end = _whole(calls)
    clients = dict.fromkeys(_who(call.begin.node, call.begin.process) for call in calls)
    ops = [op.index for call in calls for op in (call.begin, call.end) if op is not None]
    return {
        "what": (
            f"{len(calls)} requests of {', '.join(clients)} for the lock, open from "
            f"{seconds(begin)} to {seconds(end)}, were all refused, though no client held it."
        ),
        "time_ns": end,
        "valid": False,
        "ops": sorted(ops),
    }
