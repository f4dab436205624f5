"""Holds that the service had given up within their leases, as refusals to their holders show.

One release that is refused as `not-held` shows nothing: a library that got no answer sends it
twice, and the second one is refused. But if more releases of a lock are refused in calm than are
answered ok, and several, it ends its holds early by itself, or its releases do not work. The same
holds for its extends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.early_losses import leased
from fencepost.checker.facts.faults import faults, over_time
from fencepost.checker.facts.hold_events import HoldEvents, refusal
from fencepost.checker.facts.holds import Hold, lock_of, seconds
from fencepost.checker.facts.spans import Spans
from fencepost.checker.history.history import Call, History, Op

ENOUGH = 3
"""How many refused releases, or extends, of a lock it takes."""
REQUESTS = ("release", "extend")


def given_up_early(
    history: History, found: Sequence[Hold], events: HoldEvents, clocks: Clocks
) -> list[dict[str, Any]]:
    """Return one piece of evidence for each such lock and kind of request. `found`: the holds that
    count."""
    on = over_time(faults(history))
    sent: dict[tuple[str, str], list[Call]] = {}
    for call in history.calls():
        if call.begin.f in REQUESTS:
            sent.setdefault((lock_of(call.begin.value), call.begin.f), []).append(call)
    works = {about: sum(one.type == "ok" for one in calls) for about, calls in sent.items()}
    # A lock whose requests mostly succeed needs no further look.
    doubtful = [about for about, calls in sent.items() if works[about] * 2 < len(calls)]
    under_way = {lock: _under_way(sent.get((lock, "release"), ())) for lock, _ in doubtful}
    nodes = {one.begin.node for lock in under_way for one in sent.get((lock, "release"), ())}
    apart = 2 * max(map(clocks.bound, nodes), default=0)
    shown: dict[tuple[str, str], list[tuple[Hold, Op, Op]]] = {}
    for hold in found:
        for call in _first(events.own.get(hold.index, ())):
            about, answer = (hold.lock, call.begin.f), refusal(call)
            if about not in doubtful or answer is None or on.count(hold.asked, answer.time):
                continue
            may_end = min(hold.may_end, hold.other_end, hold.lost)
            runs = any(
                since <= call.begin.time and answer.time < min(until, may_end)
                for since, until in leased(hold)
            )
            near = under_way[hold.lock].touching(hold.asked - apart, answer.time + apart)
            if runs and not any(_met(one, hold, answer, clocks) for one in near):
                shown.setdefault(about, []).append((hold, call.begin, answer))
    return [
        _evidence(*about, works[about], rows)
        for about, rows in shown.items()
        if len(rows) >= ENOUGH and len(rows) > works[about]
    ]


def _first(calls: Iterable[Call]) -> Iterator[Call]:
    """Yield the first extend of a hold before its first release, and that release."""
    extended = False
    for call in calls:
        if call.begin.f == "release":
            yield call
            return
        if call.begin.f == "extend" and not extended:
            extended = True
            yield call


def _under_way(releases: Iterable[Call]) -> Spans[Call]:
    """Index releases by the time in which they may have reached the service."""
    return Spans(
        (one.begin.time, None if one.end is None or one.type == "info" else one.end.time, one)
        for one in releases
    )


def _met(call: Call, hold: Hold, answer: Op, clocks: Clocks) -> bool:
    """Return whether another process' release was under way between the request of a hold and
    this answer to its own release."""
    begin, end = call.begin, None if call.type == "info" else call.end
    apart = clocks.between(hold.node, begin.node)
    begun = begin.time <= answer.time + apart
    over = end is not None and end.time + apart < hold.asked
    return begin.process != hold.process and begun and not over


def _evidence(lock: str, f: str, works: int, rows: list[tuple[Hold, Op, Op]]) -> dict[str, Any]:
    hold, first, _ = rows[0]
    return {
        "what": (
            f"{len(rows)} {f}s of the lock were refused in calm, within their leases, and "
            f"{works or 'none'} answered ok: the service had given these holds up. The first was "
            f"hold {hold.name} of {hold.who}, at {seconds(first.time)}."
        ),
        "time_ns": first.time,
        "lock": lock,
        "ops": [index for _, begin, answer in rows for index in (begin.index, answer.index)],
    }
