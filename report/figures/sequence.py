"""The content of the sequence diagram of a violation: messages between clients and servers.

It is the figure of Kleppmann's article of 2016: a lane for each client, each server and the
resource, with the holds, the faults and the moment of the violation. It shows the messages between
the acquire of the first hold of the evidence and the violation, and the writes that follow from it,
at most MOST. Earlier rounds of an acquire that asked again, refusals in a row, and releases after
the violation are left out unless a fault met them. sequence_drawing.py draws the chosen part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.holds import FOREVER, Hold
from fencepost.checker.history.history import History, Op
from fencepost.report.figures.lanes import affected, struck
from fencepost.runfiles import Message

MOST = 60
"""Largest number of messages shown."""
LANES = 12
DATA = "resource"
"""The checker of the data, whose violation is shown in addition to the first one."""
_FAULTS = 16
_OPS = 16
_HOLDS = 12
_FAR_NS = 20_000_000_000
"""Longest time shown before the violation, and after it."""
_LONGEST_NAME = 24


@dataclass(frozen=True)
class Broken:
    """A moment at which a promise is broken, until `until`, and which, in a few words."""

    time: float
    until: float
    words: str


@dataclass(frozen=True)
class Diagram:
    """The chosen part of a run, from `start` to `end` (ns). `named`: the holds of the evidence;
    `left_out`: the number of other messages in that time."""

    lanes: list[str]
    messages: list[Message]
    holds: list[Hold]
    named: list[str]
    faults: list[Fault]
    broken: list[Broken]
    start: float
    end: float
    left_out: int


@dataclass(frozen=True)
class Evidence:
    """The first piece of evidence of a checker that found a violation, the holds that it is about,
    and the time at which it is complete, until `until`."""

    checker: str
    piece: Mapping[str, Any]
    holds: list[str]
    time: float
    until: float


def evidence_of(
    checkers: Mapping[str, Mapping[str, Any]], order: Iterable[str], history: History
) -> list[Evidence]:
    """Return the first evidence of each broken promise that has a time, in this order."""
    found = []
    for name in order:
        row = checkers.get(name) or {}
        pieces = row.get("evidence") or ()
        if row.get("valid") is False and pieces and _number(pieces[0].get("time_ns"), -1) >= 0:
            found.append(_evidence(name, pieces[0], history))
    return found


def _evidence(name: str, piece: Mapping[str, Any], history: History) -> Evidence:
    places = [one for one in piece.get("ops") or () if type(one) is int and 0 <= one < len(history)]
    ops = [op for place in places[:_OPS] for op in _with_answer(history, place)]
    named = [str(hold) for hold in piece.get("holds") or ()]
    holds = [str(op.value["hold"]) for op in ops if op.value.get("hold") is not None]
    time = _number(piece.get("time_ns"), 0)
    until = _number(piece.get("until_ns"), time)
    if until <= time:  # it is complete with the last of its ops
        time = until = max([time, *(op.time for op in ops)])
    return Evidence(name, piece, list(dict.fromkeys(named or holds)), time, until)


def _with_answer(history: History, place: int) -> list[Op]:
    """Return an op, and its completion if it is an invocation that has one."""
    op = history.ops[place]
    if op.type != "invoke":
        return [op]
    later = islice(history.ops, place + 1, None)
    answers = (one for one in later if (one.process, one.f) == (op.process, op.f))
    return [op, *islice(answers, 1)]


def chosen(
    messages: Iterable[Message],
    broken: Sequence[Evidence],
    found: Sequence[Hold],
    on: Sequence[Fault],
    nodes: Sequence[str],
) -> Diagram | None:
    """Return what to draw for the first of these pieces of evidence, or None if there is no message
    to show. `nodes`: the order of the lanes."""
    if not broken:
        return None
    first, about = broken[0], holds_of(broken[0], found)
    start, end = window(broken, about)
    last = max(end, start + 1)
    near = [one for one in messages if one.sent_ns < last and _ended(one) >= start]
    near.sort(key=lambda one: one.sent_ns)
    close = [fault for fault in on if fault.start <= end and (fault.end or end) >= start]
    told = _told(near, first)
    kept = _most(told, first)
    if not kept:
        return None
    held = [one for one in found if one.start <= end and one.strict_end >= start]
    held.sort(key=lambda one: one not in about)
    lanes = _lanes(kept, close[:_FAULTS], held[:_HOLDS], nodes)
    shown = [one for one in kept if {one.source, one.to} <= set(lanes)]
    return Diagram(
        lanes,
        sorted(shown, key=lambda one: (one.sent_ns, one.call, one.reply)),
        sorted(held[:_HOLDS], key=lambda one: one.start),
        [hold.name for hold in about],
        close[:_FAULTS],
        [_broken(one) for one in [first, *_damage(broken)] if one.time <= end],
        start,
        end,
        len(near) - len(shown),
    )


def holds_of(first: Evidence, found: Sequence[Hold]) -> list[Hold]:
    """Return the holds that a violation is about, in order of grant. If it names fewer than two,
    those that overlap, and the one before, may explain it."""
    named = [hold for hold in found if hold.name in first.holds]
    if len(named) > 1:
        return sorted(named, key=lambda hold: hold.start)
    since = min((hold.start for hold in named), default=first.time)
    before = [hold for hold in found if hold.start < since][-1:]
    beside = [hold for hold in found if hold.start <= first.time and hold.strict_end > since]
    about = {hold.name: hold for hold in (*before, *beside, *named)}
    return sorted(about.values(), key=lambda hold: hold.start)


def window(broken: Sequence[Evidence], about: Sequence[Hold]) -> tuple[float, float]:
    """Return the time to show: from the acquire of the first hold until the violation is complete,
    and until damage to the data that follows from it. A violation without a hold follows from what
    came before it."""
    first = broken[0]
    start = min([first.time, *(hold.asked for hold in about)]) if about else 0
    end = max([first.until, *(one.time for one in _damage(broken))])
    return max(start, first.time - _FAR_NS), min(end, first.time + _FAR_NS)


def _damage(broken: Sequence[Evidence]) -> list[Evidence]:
    """Return the damage to the data that follows from the first violation."""
    return [one for one in broken[1:] if one.checker == DATA and one.time >= broken[0].time]


def _broken(one: Evidence) -> Broken:
    if kind := one.piece.get("kind"):
        return Broken(one.time, one.time, f"{one.checker} is broken: {str(kind).replace('_', ' ')}")
    about = ": two holders" if len(one.holds) == 2 and one.until > one.time else ""
    return Broken(one.time, one.until, f"{one.checker} is broken{about}")


def _ended(one: Message) -> float:
    return one.sent_ns if one.arrived_ns is None else one.arrived_ns


def _told(near: Sequence[Message], first: Evidence) -> list[Message]:
    """Leave out exchanges that do not matter: earlier rounds of an acquire, refusals in a row, and
    releases after the violation, unless a fault met one of them."""
    met = {one.call for one in near if one.fate}
    rounds = _last_rounds(near)

    def matters(one: Message) -> bool:
        if one.f in ("release", "close"):
            return one.sent_ns < first.time
        return one.f != "acquire" or one.sent_ns >= rounds.get((_client(one), one.op_ns), 0)

    calls = {one.call for one in near if not one.reply and not matters(one)} | _repeated(near)
    calls -= met
    return [one for one in near if one.call not in calls]


def _repeated(near: Sequence[Message]) -> set[int]:
    """Return the exchanges between two others in which the same client was refused the same
    request."""
    denied = {one.call for one in near if one.denied}
    asked: dict[str, list[tuple[int, tuple[str, str]]]] = {}
    for one in near:
        if not one.reply:
            asked.setdefault(one.source, []).append((one.call, (one.to, one.words)))
    return {
        mine[place][0]
        for mine in asked.values()
        for place in range(1, len(mine) - 1)
        if len({what for _, what in mine[place - 1 : place + 2]}) == 1
        and denied.issuperset(call for call, _ in mine[place - 1 : place + 2])
    }


def _client(one: Message) -> str:
    return one.to if one.reply else one.source


def _last_rounds(near: Sequence[Message]) -> dict[tuple[str, float], float]:
    """Return when each acquire that repeated its last request began to ask for the last time."""
    ops: dict[tuple[str, float], list[Message]] = {}
    for one in near:
        if not one.reply and one.f == "acquire":
            ops.setdefault((one.source, one.op_ns), []).append(one)
    rounds = {}
    for op, asked in ops.items():
        same = [one for one in asked if one.words == asked[-1].words]
        last = {one.to: one.sent_ns for one in same}
        if len(same) > len(last):
            rounds[op] = min(last.values())
    return rounds


def _most(told: Sequence[Message], first: Evidence) -> list[Message]:
    """Return at most MOST messages, whole exchanges: those that a fault met, then those that had an
    effect, and of these the nearest to the violation."""
    calls: dict[int, list[Message]] = {}
    for one in told:
        calls.setdefault(one.call, []).append(one)

    def order(exchange: Sequence[Message]) -> tuple[bool, bool, float]:
        usual = not any(one.fate for one in exchange)
        return usual, any(one.denied for one in exchange), abs(exchange[0].sent_ns - first.time)

    found: list[Message] = []
    for exchange in sorted(calls.values(), key=order):
        if len(found) + len(exchange) <= MOST:
            found += exchange
    return found


def _lanes(
    kept: Sequence[Message], on: Sequence[Fault], held: Sequence[Hold], nodes: Sequence[str]
) -> list[str]:
    """Return the nodes to show, in the order of `nodes`, others last: those of messages first."""
    talks = {name for one in kept for name in (one.source, one.to)}
    talks |= {hold.node for hold in held if hold.node}
    hit = {name for fault in on for name in struck(fault)} & {*nodes, *talks}
    order = [*nodes, *sorted((talks | hit) - set(nodes))]
    shown = sorted((name for name in order if name in talks | hit), key=lambda n: n not in talks)
    return [name for name in order if name in shown[:LANES]]


def hit_lanes(fault: Fault, lanes: Sequence[str]) -> list[str]:
    """Return the lanes that show a fault."""
    names = struck(fault) or affected(fault)
    return [name for name in lanes if name in names]


def believed_end(hold: Hold) -> float:
    return min(hold.believed_end, hold.strict_end)


def _number(value: Any, default: float) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and value < FOREVER
    return value if usable else default


def short_name(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
