"""Holds that the service had given up within their leases, as the refusals of their releases show.

One release that is refused as `not-held` shows nothing: a library that got no answer sends it
twice, and the second one is refused. But a lock of which no release is ever answered ok, and
several are refused in calm, ends its holds early by itself, or its releases do not work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.early_losses import leased
from fencepost.checker.facts.faults import faults, over_time
from fencepost.checker.facts.hold_events import HoldEvents, refusal
from fencepost.checker.facts.holds import Hold, lock_of, seconds
from fencepost.checker.facts.spans import Spans
from fencepost.checker.history.history import Call, History, Op

ENOUGH = 3
"""How many refused releases of a lock it takes."""


def given_up_early(
    history: History, found: Sequence[Hold], events: HoldEvents, clocks: Clocks
) -> list[dict[str, Any]]:
    """Return one piece of evidence for each such lock. `found`: the holds that count."""
    on = over_time(faults(history))
    releases: dict[str, list[Call]] = {}
    for sent in history.calls():
        if sent.begin.f == "release":
            releases.setdefault(lock_of(sent.begin.value), []).append(sent)
    # Those of other locks need no further look.
    works = {lock for lock, sent in releases.items() if any(one.type == "ok" for one in sent)}
    under_way = {lock: _under_way(releases[lock]) for lock in releases.keys() - works}
    nodes = {one.begin.node for lock in under_way for one in releases[lock]}
    apart = 2 * max(map(clocks.bound, nodes), default=0)
    shown: dict[str, list[tuple[Hold, Op, Op]]] = {}
    for hold in found:
        if hold.lock not in under_way:
            continue
        mine = (one for one in events.own.get(hold.index, ()) if one.begin.f == "release")
        call = next(mine, None)
        answer = None if call is None else refusal(call)
        if call is None or answer is None or on.count(hold.asked, answer.time):
            continue
        may_end = min(hold.may_end, hold.other_end, hold.lost)
        runs = any(
            since <= call.begin.time and answer.time < min(until, may_end)
            for since, until in leased(hold)
        )
        near = under_way[hold.lock].touching(hold.asked - apart, answer.time + apart)
        if runs and not any(_met(one, hold, answer, clocks) for one in near):
            shown.setdefault(hold.lock, []).append((hold, call.begin, answer))
    return [_evidence(lock, rows) for lock, rows in shown.items() if len(rows) >= ENOUGH]


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


def _evidence(lock: str, rows: list[tuple[Hold, Op, Op]]) -> dict[str, Any]:
    hold, first, _ = rows[0]
    return {
        "what": (
            f"No release of the lock was answered ok, and {len(rows)} were refused in calm, within "
            f"their leases: the service had given these holds up. The first was hold {hold.name} "
            f"of {hold.who}, at {seconds(first.time)}."
        ),
        "time_ns": first.time,
        "lock": lock,
        "ops": [index for _, begin, answer in rows for index in (begin.index, answer.index)],
    }
