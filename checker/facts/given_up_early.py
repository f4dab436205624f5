"""Holds that the service had given up within their leases, as refusals to their holders show.

One release that is refused as `not-held` shows nothing: a library that got no answer sends it
twice, and the second one is refused. But if more releases of a lock are refused in calm than are
answered ok, and several, it ends its holds early by itself, or its releases do not work. So it does
if several are refused faster than most are answered ok: a library that waits for an answer first,
and then sends its request again, takes longer than that. The same holds for extends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.early_losses import leased
from fencepost.checker.facts.faults import Fault, faults, over_time
from fencepost.checker.facts.hold_events import HoldEvents, refusal
from fencepost.checker.facts.holds import Hold, lock_of, seconds
from fencepost.checker.facts.spans import Spans
from fencepost.checker.history.history import Call, History, Op

ENOUGH = 3
"""How many refused releases, or extends, of a lock it takes."""
REQUESTS = ("release", "extend")
Refused = tuple[Hold, Op, Op]
"""A hold, its request, and the answer that refused it."""


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
    # A lock of which few requests fail needs no further look.
    doubtful = [
        about for about, calls in sent.items() if sum(one.type == "fail" for one in calls) >= ENOUGH
    ]
    under_way = {lock: _under_way(sent.get((lock, "release"), ())) for lock, _ in doubtful}
    nodes = {one.begin.node for lock in under_way for one in sent.get((lock, "release"), ())}
    apart = 2 * max(map(clocks.bound, nodes), default=0)
    shown: dict[tuple[str, str], list[Refused]] = {}
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
    found_early = []
    for about, rows in shown.items():
        if len(rows) <= works[about]:
            middle = _middle(_in_calm(sent[about], on))
            rows = [row for row in rows if row[2].time - row[1].time < middle]
        if len(rows) >= ENOUGH:
            found_early.append(_evidence(*about, works[about], rows))
    return found_early


def _in_calm(calls: Iterable[Call], on: Spans[Fault]) -> list[int]:
    """Return how long the requests took that were answered ok while no fault was on."""
    answered = ((one.begin.time, one.end.time) for one in calls if one.type == "ok" and one.end)
    return [end - begin for begin, end in answered if not on.count(begin, end)]


def _middle(took: list[int]) -> int:
    """Return the duration that at least half of these reach; 0 of too few."""
    return sorted(took)[len(took) // 2] if len(took) >= ENOUGH else 0


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
    return Spans((one.begin.time, _over(one), one) for one in releases)


def _over(call: Call) -> int | None:
    """Return when a request was answered; None if its outcome is unknown."""
    return None if call.end is None or call.type == "info" else call.end.time


def _met(call: Call, hold: Hold, answer: Op, clocks: Clocks) -> bool:
    """Return whether another process' release was under way between the request of a hold and
    this answer to its own release."""
    begin, over = call.begin, _over(call)
    apart = clocks.between(hold.node, begin.node)
    begun = begin.time <= answer.time + apart
    before = over is not None and over + apart < hold.asked
    return begin.process != hold.process and begun and not before


def _evidence(lock: str, f: str, works: int, rows: list[Refused]) -> dict[str, Any]:
    hold, first, _ = rows[0]
    fast = "" if len(rows) > works else ", faster than most of these"
    return {
        "what": (
            f"{len(rows)} {f}s of the lock were refused in calm, within their leases, and "
            f"{works or 'none'} answered ok{fast}: the service had given these holds up. The first "
            f"was hold {hold.name} of {hold.who}, at {seconds(first.time)}."
        ),
        "time_ns": first.time,
        "lock": lock,
        "ops": [index for _, begin, answer in rows for index in (begin.index, answer.index)],
    }
