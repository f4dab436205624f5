"""The rows of a sequence diagram: its events in order of time, each of which has a row of its own.

An exchange that nothing interrupted is one row; any other message is sent in one row, and arrives
in another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.holds import Hold
from fencepost.report.figures.sequence import Diagram, believed_end, hit_lanes
from fencepost.runfiles import Message

LONG = 6
"""An exchange that takes this many times longer than usual is drawn with its wait; so is a wait of
this many usual distances, as a cut of the axis."""
_WHICH = ("one", "two")


@dataclass(frozen=True)
class Row:
    """An event: `kind` is exchange, send, arrive, fault, grant, expiry or broken."""

    time: float
    rank: int
    kind: str
    message: Message | None = None
    reply: Message | None = None
    text: str = ""
    lane: str = ""
    family: str = ""
    name: str = ""


_RANK = {"fault": 0, "arrive": 1, "exchange": 1, "grant": 2, "expiry": 3, "broken": 4, "send": 5}


def rows(shown: Diagram) -> list[Row]:
    """Return the rows of a diagram in order of time."""
    return sorted(_rows(shown), key=lambda row: (row.time, row.rank))


def _rows(shown: Diagram) -> Iterator[Row]:
    faults = [fault for fault in shown.faults if hit_lanes(fault, shown.lanes)]
    for fault in faults:
        lane = hit_lanes(fault, shown.lanes)[0]
        begun = max(float(fault.start), shown.start)
        since = f" (from {fault.start / 1e9:.4g} s on)" if fault.start < shown.start else ""
        yield _row(
            begun,
            "fault",
            text=f"{fault.what}{since}",
            lane=lane,
            family=fault.family,
            name=fault.name,
        )
    for hold in shown.holds:
        if hold.node not in shown.lanes:
            continue
        token = "" if hold.token is None else f", token {hold.token}"
        style = which(hold, shown.named)
        if hold.start >= shown.start:
            text = f"granted: hold {hold.name}{token}"
            yield _row(
                hold.start, "grant", text=text, lane=hold.node or "", family=style, name=hold.name
            )
        over = believed_end(hold)
        if shown.start <= over <= shown.end and over < hold.strict_end:
            text = f"the lease of hold {hold.name} has expired"
            yield _row(
                over,
                "expiry",
                text=text,
                lane=hold.node or "",
                family=style,
                name=f"{hold.name} expires",
            )
    for one in shown.broken:
        yield _row(one.time, "broken", text=one.words)
    yield from _messages(shown.messages, faults)


def _row(time: float, kind: str, **more: str) -> Row:
    return Row(time, _RANK[kind], kind, text=more["text"], lane=more.get("lane", ""),
                family=more.get("family", ""), name=more.get("name", ""))  # fmt: skip


def _messages(found: Sequence[Message], faults: Sequence[Fault]) -> Iterator[Row]:
    """Yield an exchange that nothing interrupted as one row, other messages as two."""
    pairs = _pairs(found)
    usual = median([took for _, _, took in pairs.values()] or [0])
    begun = sorted(fault.start for fault in faults)
    single = {*map(id, found)}
    for one, reply, took in pairs.values():
        # A fault that begins between the two is drawn between them.
        met = bisect_right(begun, (reply.arrived_ns or 0)) > bisect_right(begun, one.sent_ns)
        if took <= LONG * usual and not met:
            single -= {id(one), id(reply)}
            yield Row(one.arrived_ns or one.sent_ns, 1, "exchange", one, reply)
    for one in found:
        if id(one) in single:
            # A reply comes before what follows from it at the same time.
            rank = _RANK["arrive" if one.reply else "send"]
            yield Row(one.sent_ns, rank, "send", one)
            if arrives(one):
                arrived = one.arrived_ns or 0
                rank = _RANK["arrive"] if arrived > one.sent_ns else rank
                yield Row(max(arrived, one.sent_ns), rank, "arrive", one)


def arrives(one: Message) -> bool:
    """Return whether a message reaches the lane of its receiver."""
    return one.arrived_ns is not None and one.fate != "refused"


def _pairs(found: Iterable[Message]) -> dict[int, tuple[Message, Message, float]]:
    """Return each request with its reply, and how long both took, if both arrived as usual."""
    calls: dict[int, list[Message]] = {}
    for one in found:
        calls.setdefault(one.call, []).append(one)
    pairs = {}
    for call, mine in calls.items():
        if len(mine) == 2 and not any(one.fate or one.arrived_ns is None for one in mine):
            one, reply = sorted(mine, key=lambda message: message.reply)
            if reply.reply and not one.reply:
                pairs[call] = one, reply, (reply.arrived_ns or 0) - one.sent_ns
    return pairs


def long_wait(rows: Sequence[Row]) -> float:
    """Return the longest wait that is drawn in full: some usual distances of two events."""
    times = sorted({row.time for row in rows})
    steps = [after - before for before, after in pairwise(times)]
    return LONG * 2 * median(steps) if steps else 0


def which(hold: Hold, named: Sequence[str]) -> str:
    """Return the style of a hold: the first and the second of the evidence, or another."""
    return _WHICH[named.index(hold.name)] if hold.name in named[:2] else "more"
