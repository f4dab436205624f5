"""Clients that are never granted a free lock, although others are.

A lock may serve one client before another. But a client that is refused a lock that no client has,
while another that comes later is granted it at its first request, and that again and again, is shut
out: its library has lost its connection, for example, and answers for the service.

Only requests count that began and were refused within one free time, in calm. A free time counts if
a grant to another client ended it which had not been refused in it before: so the lock was
available.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from fencepost.checker.facts.hindered import Hindered
from fencepost.checker.facts.holds import FOREVER, Hold, seconds
from fencepost.checker.facts.obstacles import Request, Span
from fencepost.checker.facts.taken import Taken
from fencepost.checker.facts.waits import Waited
from fencepost.checker.history.history import Call, Op


class ShutOut(Struct, frozen=True, gc=False):
    """A client that asked `many` times from `since` to `until` and was refused each time."""

    lock: str
    who: str
    many: int
    since: float
    until: float
    ops: tuple[int, int]

    def to_json(self) -> dict[str, object]:
        return {
            "what": (
                f"{self.who} was refused {self.many} times from {seconds(self.since)} to "
                f"{seconds(self.until)} while no client had the lock, though other clients were "
                "granted it at once."
            ),
            "time_ns": self.until,
            "valid": False,
            "waited_s": None,
            "lock": self.lock,
            "ops": list(self.ops),
        }


def free_times(taken: Iterable[Taken], since: float, end_ns: int) -> Iterator[Span]:
    """Yield the spans in which no client can have the lock, from `since` on."""
    for row in sorted(taken, key=lambda row: row.begin):
        until = min(row.begin, end_ns)
        if until > since:
            yield since, until
        since = max(since, row.begin, row.over)
    if end_ns > since:
        yield since, end_ns


@dataclass
class _Vain:
    """The requests in vain of one client since it was last granted the lock, from `begin` to `end`
    without a pause, and in the free time at `place`. `earlier`: for how long it asked before."""

    place: int
    begin: int
    end: int
    calls: list[Call] = field(default_factory=list)
    earlier: float = 0.0

    def add(self, call: Call, end: int, place: int, pause: float) -> None:
        """Add a request that was refused at `end` in the free time at `place`."""
        if place != self.place or call.begin.time > self.end + pause:
            self.earlier = self.asked(pause)
            self.place, self.begin = place, call.begin.time
        self.end = max(self.end, end)
        self.calls.append(call)

    def asked(self, pause: float) -> float:
        """Return for how long it asked in all, a pause less each time."""
        return self.earlier + max(0.0, self.end - self.begin - pause)


def shut_out(lock: Waited, free: Iterable[Span], hindered: Hindered) -> Iterator[ShutOut]:
    """Yield the clients that asked in vain in such free times for longer than the bound in all, a
    pause less each time. `free`: the free times of the lock, in order."""
    asked, apart = lock.requests, lock.apart
    times = _ended_by_grants(asked, lock.found, free)
    begins = [since for since, _ in times]
    by_itself = alone(asked, apart) if hindered.one_by_one else None
    vain: dict[int | str, _Vain] = {}
    for call, one in asked:
        begin, end, client = call.begin, call.end, _client(call.begin)
        if call.type == "ok":
            vain.pop(client, None)
        if end is None or end.type != "fail" or one.asked_until < end.time:
            continue
        place = bisect_right(begins, begin.time - apart) - 1
        if place < 0 or end.time + apart >= times[place][1]:
            continue
        if by_itself is not None and begin.index not in by_itself:
            continue
        if not hindered.calm(begin.node, begin.time, end.time):
            continue
        mine = vain.setdefault(client, _Vain(place, begin.time, end.time))
        mine.add(call, end.time, place, lock.pause)
        if mine.asked(lock.pause) > lock.bound:
            yield _shut_out(lock.lock, mine.calls)
            del vain[client]


def _ended_by_grants(
    asked: Iterable[tuple[Call, Request]], found: Iterable[Hold], free: Iterable[Span]
) -> list[Span]:
    """Return the free times that ended with a grant to a client at its first request, in order:
    from when on, and until any such grant was asked for. That client was not refused in it."""
    failed: dict[int | str, list[Call]] = {}
    for call, _ in asked:
        if call.type != "ok" and call.end is not None:
            failed.setdefault(_client(call.begin), []).append(call)
    starting: dict[float, list[Hold]] = {}
    for hold in found:
        starting.setdefault(hold.start, []).append(hold)
    times: list[Span] = []
    for since, until in free:
        grants = starting.get(until, [])
        if any(not _tried(failed.get(_client(hold), []), since, until) for hold in grants):
            times.append((since, min(hold.asked for hold in grants)))
    return times


def _client(who: Op | Hold) -> int | str:
    """Return the client: its node, because its next process has another number after an error."""
    return who.node or who.process


def _tried(failed: Sequence[Call], since: float, until: float) -> bool:
    """Return whether one of these began in a free time. They are in order of invocation."""
    place = bisect_left(failed, since, key=lambda call: call.begin.time)
    return place < len(failed) and failed[place].begin.time <= until


def alone(asked: Sequence[tuple[Call, Request]], apart: int) -> set[int]:
    """Return the indices of the requests during which no other was open: clients that ask each
    server by itself may refuse one another. `asked` in order of invocation."""
    found, stood = set[int](), -FOREVER
    for place, (call, one) in enumerate(asked):
        following = asked[place + 1][0].begin.time if place + 1 < len(asked) else FOREVER
        if stood + apart < one.begin and one.open_until + apart < following:
            found.add(call.begin.index)
        stood = max(stood, one.open_until)
    return found


def _shut_out(lock: str, calls: Sequence[Call]) -> ShutOut:
    first, last = calls[0].begin, calls[-1].end
    assert last is not None
    who = first.node or f"process {first.process}"
    return ShutOut(lock, who, len(calls), first.time, last.time, (first.index, last.index))
