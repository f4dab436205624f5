"""The reigns of leaders, and the figures of an election: computed from the history alone.

A reign is a hold of an elector. Its *work* begins when the reign does, and ends with the invocation
of its last beat: a read or write under the hold. A beat in flight belongs to the data's question,
and not to this one. Two works overlap if the later one began while the earlier one lasted, by more
than the bounds of both clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from msgspec import Struct

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.faults import Fault, faults
from fencepost.checker.facts.holds import FOREVER, Hold, holds
from fencepost.checker.history.history import History

RESIGN, EXIT, NO_CAUSE, OTHER = "resign", "exit", "no cause", "fault"
CUT = "cut"
_OF_CLIENTS = {"kill": "kill", "pause": "pause"}
_BEATS = ("read", "write")


class Reign(Struct, frozen=True):
    """One reign. `work_end`: the invocation of its last beat (ns). `late_beats`: those that it
    began after `stopped`. `told`: when its elector called `stopped`; FOREVER if it never did."""

    hold: Hold
    work_end: int
    beats: int
    late_beats: int
    told: float

    @property
    def start(self) -> int:
        return self.hold.start


class TwoAtWork(Struct, frozen=True):
    """`first` still worked when `second` had begun, from `start` until `end` (ns)."""

    first: Reign
    second: Reign
    start: int
    end: int


def reigns(history: History, test: Mapping[str, Any]) -> list[Reign]:
    """Return every reign, in order of its beginning."""
    told = {(op.process, op.value.get("hold")): op.time for op in reversed(history.lost())}
    beats: dict[tuple[int | str, str], list[int]] = {}
    for call in history.calls():
        if call.begin.f in _BEATS and call.value.get("hold") is not None:
            key = call.begin.process, str(call.value["hold"])
            beats.setdefault(key, []).append(call.begin.time)
    found = []
    for hold in holds(history, test):
        key = hold.process, hold.name
        times, until = beats.get(key, []), float(told.get(key, FOREVER))
        late = sum(time > until for time in times)
        found.append(Reign(hold, max([hold.start, *times]), len(times), late, until))
    return found


def two_at_work(found: Sequence[Reign], clocks: Clocks) -> list[TwoAtWork]:
    """Return the overlaps of work: of each reign with the earlier one, of another process, that
    worked longest."""
    rows = []
    for place, second in enumerate(found):
        earlier = [
            one
            for one in found[:place]
            if one.hold.process != second.hold.process
            and one.hold.lock == second.hold.lock
            and one.work_end - second.start > clocks.between(one.hold.node, second.hold.node)
        ]
        if earlier:
            first = max(earlier, key=lambda one: one.work_end)
            until = max(float(second.work_end), _over(second))
            end = int(min(float(first.work_end), until))
            if end > second.start:
                rows.append(TwoAtWork(first, second, second.start, end))
    return rows


def figures(history: History, test: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of the run, in s. Each is exact but for `clock_error_s`."""
    clocks, found = Clocks(test), reigns(history, test)
    both = two_at_work(found, clocks)
    nodes = {one.hold.node for one in found}
    changes = take_overs(found, history, test)
    without = sum(cause == NO_CAUSE for cause, _ in changes)
    took: dict[str, list[float]] = {}
    for cause, took_ns in changes:
        took.setdefault(cause, []).append(took_ns / 1e9)
    return {
        "reigns": len(found),
        "overlaps": len(both),
        "overlap_longest_s": _s(max((one.end - one.start for one in both), default=0)),
        "overlap_total_s": _s(_covered((one.start, one.end) for one in both)),
        "clock_error_s": _s(2 * max(map(clocks.bound, nodes), default=0)),
        "without_leader_s": _s(_without_leader(found, history.end_ns)),
        "changes_without_cause": without,
        "beats_after_stopped": sum(one.late_beats for one in found),
        "take_over_s": {
            cause: {
                "count": len(times),
                "median": round(median(times), 6),
                "longest": round(max(times), 6),
            }
            for cause, times in sorted(took.items())
        },
    }


def _over(reign: Reign) -> float:
    """Return when a reign ended: it was given up, or its deadline passed."""
    return max(reign.hold.start, min(reign.hold.strict_end, reign.hold.deadline))


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of spans, in ns."""
    total, until = 0.0, -FOREVER
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _without_leader(found: Sequence[Reign], end_ns: int) -> float:
    """Return the time without a leader between the first reign and the end of the last, in ns."""
    spans = [(float(one.start), min(_over(one), float(end_ns))) for one in found]
    if not spans:
        return 0.0
    return max(end for _, end in spans) - spans[0][0] - _covered(spans)


def take_overs(
    found: Sequence[Reign], history: History, test: Mapping[str, Any]
) -> list[tuple[str, float]]:
    """Return the cause of each change of leader, and how long after it the next one led (ns)."""
    on = faults(history)
    lease_ns = float(test.get("ttl_ms", 0)) * 1e6
    rows = []
    for first, second in pairwise(found):
        cause, since = _cause(first, second, on, lease_ns)
        rows.append((cause, max(0.0, second.start - since)))
    return rows


def _cause(first: Reign, second: Reign, on: Sequence[Fault], lease_ns: float) -> tuple[str, float]:
    """Return why a reign was followed by the next one, and since when."""
    hold, over = first.hold, _over(first)
    during = [one for one in on if first.start <= one.start <= min(over, second.start)]
    for fault in during:
        kind = _OF_CLIENTS.get(fault.family) if hold.node in fault.targets else None
        kind = kind or (CUT if any(hold.node in link for link in fault.links or ()) else None)
        if kind:
            return kind, fault.start
    if hold.ended_by == "release":
        return RESIGN, hold.strict_end
    told = min(first.told, hold.deadline)
    if told > over:
        return EXIT, over
    near = any(
        one.start <= over and (one.end is None or one.end + 2 * lease_ns >= over) for one in on
    )
    return (OTHER if near else NO_CAUSE), over


def _s(time_ns: float) -> float:
    return round(time_ns / 1e9, 6)
