"""What a page takes from the ops themselves, in one pass over the history: acquires and writes.

A history may be far larger than what is drawn of it, so that nothing here keeps an op. Writes out
of focus are counted in their block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.history import NEMESIS, SPONTANEOUS, History, Op
from fencepost.report.focus import WHOLE, Focus
from fencepost.report.grid import Grid
from fencepost.report.measures import Answers

STATES = ("accepted", "refused", "unknown")
_STATE_OF = {"ok": "accepted", "fail": "refused"}


@dataclass(slots=True)
class Write:
    """One write: when it was sent and answered (ns; sent, where no answer came), and what became
    of it. One without an answer was accepted if somebody read what it wrote."""

    number: int
    node: str | None
    time: int
    sent: int
    state: str
    value: Any
    token: Any
    hold: Any
    error: str | None


@dataclass
class Recorded:
    """`ops`: how many were invoked. `writes`: those in focus, and those without answer, in the
    order of sending; of all, `written`. `others`: (time, token, state) of some out of focus.

    `counts`: for each node and block, how many writes out of focus there were of each of STATES.
    """

    ops: int = 0
    written: int = 0
    answers: Answers = field(default_factory=Answers)
    writes: list[Write] = field(default_factory=list)
    others: list[tuple[int, int, str]] = field(default_factory=list)
    counts: dict[tuple[str | None, int], list[int]] = field(default_factory=dict)


def recorded(history: History, focus: Focus = WHOLE, grid: Grid | None = None) -> Recorded:
    """Go through the history once. `grid` thins out the tokens of writes out of focus."""
    return _Pass(focus, grid).over(history)


class _Pass:
    def __init__(self, focus: Focus, grid: Grid | None) -> None:
        self._focus, self._grid, self._found = focus, grid, Recorded()
        # Writes without answer so far, by what a read would show.
        self._unsure: dict[tuple[str, str], Write] = {}

    def over(self, history: History) -> Recorded:
        begun: dict[int | str, Op] = {}
        for op in history:
            if op.type == "invoke":
                if op.process != NEMESIS:
                    self._found.ops += 1
                    begun[op.process] = op
                    if op.f == "write":
                        self._send(op)
            elif op.f not in SPONTANEOUS and op.process != NEMESIS:
                begin = begun.pop(op.process, None)
                if begin is None:
                    continue
                if op.f == "acquire":
                    self._found.answers.add(op.time, op.time - begin.time, op.type)
                elif op.f == "read" and op.type == "ok":
                    self._read(begin, op)
                elif op.f == "write":
                    self._answer(begin, op)
        self._found.writes += self._unsure.values()
        self._found.writes.sort(key=lambda write: write.number)
        return self._found

    def _send(self, begin: Op) -> None:
        write = Write(
            begin.index,
            begin.node,
            begin.time,
            begin.time,
            "unknown",
            begin.value.get("value"),
            begin.value.get("token"),
            begin.value.get("hold"),
            None,
        )
        self._found.written += 1
        same = self._unsure.setdefault(_what(begin, begin), write)
        if same is not write:  # a value that is no write's own proves none
            self._found.writes.append(write)

    def _read(self, begin: Op, end: Op) -> None:
        write = self._unsure.get(_what(begin, end))
        if write is not None:
            write.state = "accepted"

    def _answer(self, begin: Op, end: Op) -> None:
        write = self._unsure.get(_what(begin, begin))
        if write is None or write.number != begin.index:
            return
        write.time = end.time
        if end.error:
            write.error = " ".join(map(str, end.error))
        if end.type == "info":
            return
        del self._unsure[_what(begin, begin)]
        write.state = _STATE_OF[end.type]
        if self._focus.shows(write.time):
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


def _what(begin: Op, end: Op) -> tuple[str, str]:
    """What a write writes, or a read shows: its resource and its value."""
    return repr(begin.value.get("resource")), repr(end.value.get("value"))
