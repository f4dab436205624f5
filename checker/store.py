"""`store`: is the resource's own history linearizable?

The resource is a register whose accepted writes are numbered from 1, and a read tells the number.
So there is only one order to try, and the question is whether real time agrees with it: exact,
in O(n log n). Where it does not, the store has failed, and what `resource` finds may be the
store's doing and not the lock's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from checker.history import Call, History
from checker.holds import FOREVER, seconds
from checker.verdict import Verdict


@dataclass(frozen=True)
class _Point:
    """One op with its place in the order: writes before the reads of the same version."""

    version: int
    is_read: bool
    call: Call

    @property
    def done(self) -> float:
        return self.call.end.time if self.call.end and self.call.type == "ok" else FOREVER

    def words(self) -> str:
        verb = "read" if self.is_read else "wrote"
        return (
            f"process {self.call.begin.process} {verb} version {self.version}, from "
            f"{seconds(self.call.begin.time)} to {seconds(self.done)}"
        )


def store(history: History, test: Mapping[str, Any]) -> Verdict:
    """The reads and the accepted writes of each resource fit one order, that of the versions."""
    by: dict[Any, list[Call]] = {}
    for call in history.calls():
        if call.begin.f in ("read", "write"):
            by.setdefault(call.begin.value.get("resource"), []).append(call)
    operations = sum(1 for calls in by.values() for call in calls if call.type == "ok")
    details = {"operations": operations}
    if not operations:
        return Verdict("unknown", "The resource never answered: nothing was tested.", [], details)
    unsaid = _unsaid(by)
    if unsaid:
        return Verdict("unknown", unsaid, [], details)
    evidence = [row for calls in by.values() for row in _wrong(calls)]
    if evidence:
        return Verdict(False, evidence[0]["what"], evidence, details)
    return Verdict(True, f"All {operations} answers of the resource fit one order.", [], details)


def _unsaid(by: Mapping[Any, list[Call]]) -> str:
    for calls in by.values():
        for call in calls:
            name = "version" if call.begin.f == "read" else "stored"
            if call.type == "ok" and not isinstance(call.value.get(name), int):
                return (
                    f"The {call.begin.f} of process {call.begin.process} at "
                    f"{seconds(call.begin.time)} does not say its version, so that there is no "
                    "order to try."
                )
    return ""


def _wrong(calls: list[Call]) -> list[dict[str, Any]]:
    """The first thing that does not fit, if anything does not."""
    values: dict[int, tuple[Any, Call]] = {0: (None, calls[0])}
    points: list[_Point] = []
    pending: dict[Any, Call] = {}
    for call in calls:
        if call.begin.f == "write" and call.type == "info":
            pending[call.value.get("value")] = call
        elif call.type == "ok":
            is_read = call.begin.f == "read"
            version = int(call.value["version"] if is_read else call.value["stored"])
            value = call.value.get("value")
            known = values.setdefault(version, (value, call))
            if known[0] != value:
                return [
                    _row(f"Version {version} is {known[0]!r} and also {value!r}", known[1], call)
                ]
            points.append(_Point(version, is_read, call))
    twice = _written_twice(points)
    if twice:
        return twice
    by_value = {value: version for version, (value, _) in values.items()}
    for value, call in pending.items():
        if value in by_value:  # somebody read it: it happened, at any time from its invocation on
            points.append(_Point(by_value[value], False, call))
    unseen = [call for value, call in pending.items() if value not in by_value]
    return _against_time(points) or _gaps(points, unseen)


def _written_twice(points: list[_Point]) -> list[dict[str, Any]]:
    first: dict[int, _Point] = {}
    for point in points:
        if not point.is_read:
            other = first.setdefault(point.version, point)
            if other is not point:
                what = f"Version {point.version} was given to two writes"
                return [_row(what, other.call, point.call)]
    return []


def _against_time(points: list[_Point]) -> list[dict[str, Any]]:
    """An op that was over before another of a lower place had begun."""
    latest: _Point | None = None
    for point in sorted(points, key=lambda p: (p.version, p.is_read, p.call.begin.time)):
        if latest is not None and point.done < latest.call.begin.time:
            what = f"The order was turned round: {latest.words()}, after {point.words()}"
            return [_row(what, point.call, latest.call)]
        if latest is None or point.call.begin.time > latest.call.begin.time:
            latest = point
    return []


def _gaps(points: list[_Point], unseen: list[Call]) -> list[dict[str, Any]]:
    """Versions that nobody owned up to must be writes that never returned, one each.

    Such a write can have any version that nobody had seen by the time it was sent. The times by
    which versions were seen rise with the versions, so that the first write serves the first gap.
    """
    written = {point.version for point in points if not point.is_read}
    seen: list[tuple[int, _Point]] = []
    first: _Point | None = None
    after = sorted(points, key=lambda p: p.version)
    for version in range(max((p.version for p in points), default=0), 0, -1):
        while after and after[-1].version >= version:
            point = after.pop()
            first = point if first is None or point.done < first.done else first
        if version not in written and first is not None:
            seen.append((version, first))
    spare = sorted(unseen, key=lambda call: call.begin.time, reverse=True)
    for version, point in reversed(seen):
        if not spare or spare.pop().begin.time > point.done:
            what = f"No write can have made version {version}, which was there: {point.words()}"
            return [_row(what, point.call, point.call)]
    return []


def _row(what: str, first: Call, second: Call) -> dict[str, Any]:
    ends = [call.end.index if call.end else call.begin.index for call in (first, second)]
    return {"what": f"{what}.", "time_ns": second.begin.time, "ops": sorted(set(ends))}
