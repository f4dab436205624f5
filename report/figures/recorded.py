"""Collects acquires and writes for a page, in one pass over the history.

A history may be far larger than the part that is drawn, so nothing here keeps an op. Writes out of
focus are counted in their block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from operator import attrgetter
from typing import Any

from msgspec import Struct

from fencepost.checker.history.history import SPONTANEOUS, History, Op
from fencepost.report.figures.focus import WHOLE, Focus
from fencepost.report.figures.grid import Grid
from fencepost.report.figures.measures import Answers
from fencepost.report.figures.rates import Rates

WRITES = 20_000
"""Largest number of writes drawn one by one."""
STATES = ("accepted", "refused", "unknown")
_STATE_OF = {"ok": "accepted", "fail": "refused"}

_What = tuple[object, object]


class Write(Struct, gc=False):
    """One write: when it was sent and answered (ns; `sent` if it was not answered), and its
    outcome. An unanswered write was accepted if a read showed its value."""

    number: int
    node: str | None
    time: int
    sent: int
    state: str
    value: Any
    token: Any
    hold: Any
    error: str | None
    alone: bool = True
    """Whether no other write is known whose value a read would show alike."""


@dataclass
class Recorded:
    """The result of the pass.

    `ops`: how many were invoked; `writes`: those in focus, in order of sending; `written`: all
    writes by outcome; `others`: (time, token, state) of some out of focus; `rates`: ops and grants;
    `counts`: for each node and block, the writes out of focus by each of STATES.
    """

    rates: Rates
    ops: int = 0
    written: int = 0
    answers: Answers = field(default_factory=Answers)
    writes: list[Write] = field(default_factory=list)
    others: list[tuple[int, int, str]] = field(default_factory=list)
    counts: dict[tuple[str | None, int], list[int]] = field(default_factory=dict)


def recorded(history: History, focus: Focus = WHOLE, grid: Grid | None = None) -> Recorded:
    """Read the history once. `grid` thins out the tokens of writes out of focus."""
    return _Pass(focus, grid, Rates(history.end_ns)).over(history)


class _Pass:
    def __init__(self, focus: Focus, grid: Grid | None, rates: Rates) -> None:
        self._focus, self._grid, self._found = focus, grid, Recorded(rates)
        self._room = WRITES if focus.blocks else inf
        self._sent: dict[int | str, tuple[Write, _What]] = {}
        # Writes not answered yet, by the value that a read would show.
        self._unsure: dict[_What, Write] = {}

    def over(self, history: History) -> Recorded:
        begun: dict[int | str, Op] = {}
        for op in history.clients():
            if op.f in SPONTANEOUS:
                continue
            if op.type == "invoke":
                self._found.ops += 1
                self._found.rates.op(op.time)
                begun[op.process] = op
                if op.f == "write":
                    self._send(op)
            elif (begin := begun.pop(op.process, None)) is not None:
                self._complete(begin, op)
        going = (write for write, _ in self._sent.values())
        left = {id(write): write for write in (*self._unsure.values(), *going)}
        for write in left.values():
            self._keep(write)
        self._found.writes.sort(key=attrgetter("number"))
        return self._found

    def _complete(self, begin: Op, end: Op) -> None:
        if begin.f == "acquire":
            self._found.answers.add(end.time, end.time - begin.time, end.type)
            if end.type == "ok":
                self._found.rates.grant(end.time)
        elif begin.f == "read" and end.type == "ok":
            write = self._unsure.get(_what(begin, end)) if self._unsure else None
            if write is not None and write.alone:
                write.state = "accepted"
        elif begin.f == "write":
            self._answer(begin.process, end)

    def _send(self, begin: Op) -> None:
        value = begin.value
        write = Write(
            number=begin.index,
            node=begin.node,
            time=begin.time,
            sent=begin.time,
            state="unknown",
            value=value.get("value"),
            token=value.get("token"),
            hold=value.get("hold"),
            error=None,
        )
        self._found.written += 1
        what = _what(begin, begin)
        self._sent[begin.process] = write, what
        other = self._unsure.setdefault(what, write)
        other.alone = other is write

    def _answer(self, process: int | str, end: Op) -> None:
        write, what = self._sent.pop(process)
        write.time = end.time
        write.error = " ".join(map(str, end.error)) if end.error else None
        first = self._unsure.get(what) is write
        if end.type == "info" and first:
            return  # a read may settle it
        if first:
            del self._unsure[what]
        write.state = _STATE_OF.get(end.type, "unknown")
        self._keep(write)

    def _keep(self, write: Write) -> None:
        if self._focus.shows(write.time) and len(self._found.writes) < self._room:
            self._found.writes.append(write)
        else:
            self._count(write)

    def _count(self, write: Write) -> None:
        place = write.node, self._focus.block(write.time)
        counts = self._found.counts.setdefault(place, [0] * len(STATES))
        counts[STATES.index(write.state)] += 1
        if self._grid is None or type(write.token) is not int:
            return
        if self._grid.takes(write.time, write.token, write.state):
            self._found.others.append((write.time, write.token, write.state))


def _what(begin: Op, end: Op) -> _What:
    """Return the resource and value that a write writes, or a read shows."""
    resource, value = begin.value.get("resource"), end.value.get("value")
    # Values other than text may not be hashable, and 1 must differ from True.
    return (
        resource if type(resource) is str else (repr(resource),),
        value if type(value) is str else (repr(value),),
    )
