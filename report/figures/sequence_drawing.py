"""Places a sequence diagram: lanes side by side, time downwards, not to scale.

Each event has a row of its own, so that no text covers another; a long wait is cut short. Places
across are per cent of the width, and places down are pixels: so the picture fits a desk and a phone
with text of one size. An exchange that nothing interrupted is one row: the request, and its reply.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from textwrap import wrap

from fencepost.checker.facts.holds import Hold, seconds
from fencepost.report.figures.sequence import Broken, Diagram, believed_end, hit_lanes, short_name
from fencepost.report.figures.sequence_rows import Row, arrives, long_wait, rows, which
from fencepost.runfiles import Message

_LINE, _LABEL, _SLOPE = 13, 15, 9
_CUT = 30
_WIDE = 46
"""Largest number of characters of a message's request, and of its answer."""
_PHONE, _CHARACTER, _BESIDE = 306, 6.4, 12
"""The width of the lanes on a phone of 390 px, that of a character, and the distance of a text from
its lane (px)."""
_MOST_LINES = 3
_SECONDS_FROM = 10e9
"""Times from here on are in seconds, because milliseconds have too many digits."""
_WITH_UNIT = re.compile(r"(\d) (m?s\b)")
_FATES = {
    "late": "held back",
    "lost": "lost",
    "dead": "its server was down, or had restarted",
    "again": "arrived a second time",
    "unread": "its client had given up waiting",
    "refused": "the connection could not be opened",
    "unknown": "the outcome is not known",
}
_GONE = ("lost", "dead", "refused")


@dataclass(frozen=True)
class Line:
    """A line of an arrow; `what` is its style, `head` whether it ends in an arrowhead."""

    x1: float
    y1: float
    x2: float
    y2: float
    what: str
    head: bool = True


@dataclass(frozen=True)
class Label:
    """A line of text, at the right (`start`), the left (`end`) or the middle of a place. `narrow`:
    it does not fit there on a phone, where it ends at the edge."""

    x: float
    y: float
    anchor: str
    text: str
    what: str
    answer: str = ""
    narrow: bool = False


@dataclass(frozen=True)
class Bar:
    """A bar on a lane: a hold, or a fault. `title` is its tooltip."""

    x: float
    y: float
    height: float
    what: str
    title: str
    family: str = ""


@dataclass(frozen=True)
class Moment:
    """A violation: a line across at `y`, and the time until `y + height`."""

    y: float
    height: float


@dataclass
class Drawing:
    """A drawing. `lanes`: names and places across; `cuts`: where the axis is cut short;
    `stamps`: times at their places down; `said`: the same in sentences."""

    lanes: list[tuple[str, float]]
    lines: list[Line] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    crosses: list[tuple[float, float]] = field(default_factory=list)
    marks: list[tuple[float, float, str]] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    cuts: list[float] = field(default_factory=list)
    stamps: list[tuple[float, str]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    fates: list[str] = field(default_factory=list)
    height: float = 0
    title: str = ""
    arrows: int = 0
    left_out: int = 0
    unit: str = "s"
    colours: list[str] = field(default_factory=list)


def drawing(shown: Diagram) -> Drawing:
    """Return the places of everything that a diagram shows."""
    return _Draughtsman(shown).drawn()


class _Draughtsman:
    """Draws row by row. `_points`: the place down of each time, rising."""

    def __init__(self, shown: Diagram) -> None:
        self._shown = shown
        count = len(shown.lanes)
        self._x = {name: round((n + 0.5) * 100 / count, 2) for n, name in enumerate(shown.lanes)}
        names = [(short_name(name), x) for name, x in self._x.items()]
        self._made = Drawing(names, left_out=shown.left_out, arrows=len(shown.messages))
        self._points: list[tuple[float, float]] = []
        self._begun: dict[int, float] = {}
        # Where the rows of faults and holds are, by their names.
        self._own: dict[str, float] = {}
        self._y = 10.0
        short = shown.end < _SECONDS_FROM
        self._scale, self._made.unit = (1e6, "ms") if short else (1e9, "s")

    def drawn(self) -> Drawing:
        made, shown = self._made, self._shown
        found = rows(shown)
        long = long_wait(found)
        last: float | None = None
        for row in found:
            if last is not None and row.time - last > long:
                self._cut(row.time - last)
            last = row.time
            getattr(self, f"_{row.kind}")(row)
        made.height = self._y + 12
        self._add_bars()
        fates = dict.fromkeys(one.fate for one in shown.messages if one.fate)
        made.fates = list(fates)
        made.colours = list(dict.fromkeys(fault.family for fault in shown.faults))
        made.title = f"Sequence of messages: {shown.broken[0].words}"
        return made

    def _point(self, time: float, y: float) -> None:
        """Note the place of a time; places never go back."""
        if self._points:
            time, y = max(time, self._points[-1][0]), max(y, self._points[-1][1])
        self._points.append((time, y))

    def _at(self, time: float) -> float:
        """Return the place of a time: between those of the events around it."""
        place = bisect_right(self._points, (time, float("inf")))
        if place == len(self._points):
            return self._made.height
        if place == 0:
            return 4
        (before, top), (after, bottom) = self._points[place - 1], self._points[place]
        part = (time - before) / (after - before) if after > before else 0
        return round(top + part * (bottom - top), 1)

    def _stamp(self, time: float, y: float) -> None:
        text = self._clock(time)
        above, before = self._made.stamps[-1] if self._made.stamps else (-_LINE, "")
        if before != text and y - above >= _LINE - 2:
            self._made.stamps.append((y, text))

    def _say(self, time: float, words: str) -> None:
        self._made.said.append(f"{self._clock(time)} {self._made.unit}: {words}")

    def _clock(self, time: float) -> str:
        return f"{time / self._scale:.{2 if self._made.unit == 'ms' else 3}f}"

    def _cut(self, wait_ns: float) -> None:
        self._made.cuts.append(self._y + 4)
        wait = f"{wait_ns / 1e9:.3g} s" if wait_ns >= 1e9 else f"{wait_ns / 1e6:.3g} ms"
        self._made.labels.append(Label(50, self._y + 19, "middle", f"{wait} later", "cut"))
        self._y += _CUT

    # One method for each kind of row.

    def _exchange(self, row: Row) -> None:
        one, reply = row.message, row.reply
        assert one is not None and reply is not None
        x1, x2, y = self._x[one.source], self._x[one.to], self._y
        self._label(one, y + _LINE - 2, "", reply)
        begin, turn, end = y + _LABEL, y + _LABEL + _SLOPE, y + _LABEL + 2 * _SLOPE
        self._line(x1, begin, x2, turn, "")
        self._line(x2, turn, x1, end, "denied" if reply.denied else "answer")
        self._stamp(row.time, turn)
        self._point(one.sent_ns, begin)
        self._point(row.time, turn)
        self._point(reply.arrived_ns or row.time, end)
        self._say(row.time, f"{one.source} to {one.to}: {one.words}; answered: {reply.words}")
        self._y = end + 3

    def _send(self, row: Row) -> None:
        one = row.message
        assert one is not None
        y = self._y
        self._label(one, y + _LINE - 2, " ".join(filter(None, (one.fate and "odd", one.fate))))
        begin = y + _LABEL
        self._begun[id(one)] = begin
        self._stamp(one.sent_ns, begin)
        self._point(one.sent_ns, begin)
        fate = f" ({_FATES.get(one.fate, one.fate)})" if one.fate else ""
        self._say(one.sent_ns, f"{one.source} to {one.to}: {one.words}{fate}")
        self._y = begin + 3
        if not arrives(one):
            x1, x2 = self._x[one.source], self._x[one.to]
            stop = self._before(x1, x2)
            self._line(x1, begin, stop, begin + _SLOPE, one.fate, one.fate not in _GONE)
            if one.fate in _GONE:
                self._made.crosses.append((stop, begin + _SLOPE))
            self._y = begin + _SLOPE + 5

    def _arrive(self, row: Row) -> None:
        one = row.message
        assert one is not None
        begin = self._begun[id(one)]
        x1, x2 = self._x[one.source], self._x[one.to]
        end = max(self._y + 4, begin + _SLOPE)
        what = one.fate or ("denied" if one.denied else "answer" if one.reply else "")
        gone = one.fate in _GONE
        stop = self._before(x1, x2) if gone else x2
        self._line(x1, begin, stop, end, what, not gone)
        if gone:
            self._made.crosses.append((stop, end))
        self._stamp(row.time, end)
        self._point(row.time, end)
        self._y = end + 3

    def _fault(self, row: Row) -> None:
        y = self._own[row.name] = self._y + 8
        self._point(row.time, y)
        self._stamp(max(row.time, self._shown.start), y)
        self._made.marks.append((self._x[row.lane], y, row.family))
        self._text(row.text, row.lane, "fault")
        self._say(row.time, row.text)

    def _grant(self, row: Row) -> None:
        self._point(row.time, self._y + 8)
        self._own[row.name] = self._y + 8
        self._stamp(row.time, self._y + 8)
        self._text(row.text, row.lane, f"grant {row.family}")
        self._say(row.time, f"{row.lane}: {row.text}")

    _expiry = _grant

    def _broken(self, row: Row) -> None:
        self._y += 4
        self._point(row.time, self._y)
        self._made.moments.append(Moment(self._y, 0))
        self._stamp(row.time, self._y)
        self._y += 2
        self._text(row.text, "", "broken")
        self._say(row.time, row.text)

    # Parts of a row.

    def _before(self, x1: float, x2: float) -> float:
        """Return a place just before a lane, on the way to it."""
        part = 30 / len(self._x)
        return round(x2 - part if x2 > x1 else x2 + part, 2)

    def _line(
        self, x1: float, y1: float, x2: float, y2: float, what: str, head: bool = True
    ) -> None:
        self._made.lines.append(Line(x1, y1, x2, y2, what, head))

    def _label(self, one: Message, y: float, what: str, reply: Message | None = None) -> None:
        """Write the words of a message next to the lane of its sender."""
        x = self._x[one.source]
        anchor = "start" if x < self._x[one.to] else "end"
        words, answer = _cut_off(one.words), "" if reply is None else _cut_off(f"→ {reply.words}")
        style = f"{what} {'no' if reply is not None and reply.denied else ''}".strip()
        narrow = len(words) + 1 + len(answer) > beside(x, anchor)
        self._made.labels.append(Label(x, y, anchor, words, style, answer, narrow))

    def _text(self, text: str, lane: str, what: str) -> None:
        """Write a text next to a lane, on the side with more room, in lines that fit a phone."""
        x = self._x.get(lane, 50.0)
        anchor = "middle" if not lane else "start" if x <= 50 else "end"
        lines = wrap(with_units(text), beside(x, anchor), max_lines=_MOST_LINES, placeholder=" …")
        for line in lines or [""]:
            self._made.labels.append(Label(x, self._y + _LINE - 1, anchor, line, what))
            self._y += _LINE
        self._y += 6

    def _add_bars(self) -> None:
        shown, made = self._shown, self._made
        for fault in shown.faults:
            top = self._own.get(fault.name, 4)
            bottom = made.height if fault.end is None else self._at(fault.end)
            for lane in hit_lanes(fault, shown.lanes):
                # A node that stops, or a server that crashes, does nothing meanwhile.
                stops = lane in fault.stops or (fault.forgets and lane in (fault.impairs or ()))
                what = "stop" if stops else "fault"
                made.bars.append(self._bar(lane, top, bottom, what, fault.describe(), fault.family))
        for hold in shown.holds:
            if hold.node in self._x:
                made.bars += self._held(hold)
        made.moments = [
            Moment(one.y, self._height(one.y, broken))
            for one, broken in zip(
                made.moments, sorted(shown.broken, key=attrgetter("time")), strict=True
            )
        ]

    def _height(self, y: float, broken: Broken) -> float:
        lasts = broken.until > broken.time
        return round(max(0.0, self._at(broken.until) - y), 1) if lasts else 0

    def _held(self, hold: Hold) -> Iterator[Bar]:
        assert hold.node is not None
        style = which(hold, self._shown.named)
        over, end = believed_end(hold), hold.strict_end
        title = f"hold {hold.name}, from {seconds(hold.start)} to {seconds(over)}"
        top = self._own.get(hold.name, 4)
        expires = self._own.get(f"{hold.name} expires", self._at(over))
        yield self._bar(hold.node, top, expires, f"hold {style}", title)
        if end > over:
            past = f"hold {hold.name} after its lease, until {seconds(end)}"
            yield self._bar(hold.node, expires, self._at(end), f"past {style}", past)

    def _bar(
        self, lane: str, top: float, bottom: float, what: str, title: str, family: str = ""
    ) -> Bar:
        return Bar(self._x[lane], top, round(max(4.0, bottom - top), 1), what, title, family)


def beside(x: float, anchor: str, width: float = _PHONE) -> int:
    """Return the number of characters that fit next to a lane on a phone, whose lanes are so wide
    (px)."""
    part = {"start": 100 - x, "end": x, "middle": 100}[anchor] / 100
    return max(12, int((width * part - _BESIDE) / _CHARACTER))


def with_units(text: str) -> str:
    """Return a text in which no line ends between a number and its unit of time."""
    return _WITH_UNIT.sub("\\1\N{NO-BREAK SPACE}\\2", text)


def _cut_off(text: str) -> str:
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…"
