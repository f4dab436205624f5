"""Places a sequence diagram that is written as plain steps. It has no clock and no stamps."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from fencepost.report.figures import steps as notation
from fencepost.report.figures.sequence_drawing import (
    Bar,
    Drawing,
    Label,
    Line,
    Moment,
    beside,
    with_units,
)
from fencepost.report.figures.steps import (
    HELD,
    LATE,
    LOST,
    WHOLE,
    Step,
    full_name,
    in_words,
    sentence,
)

_LINE, _LABEL, _SLOPE = 13, 15, 9
_PHONE = 350
"""The width of the lanes on a phone of 390 px."""
_STYLES = ("one", "two")
_FAULT = "fault"
"""The family of all faults: none has a colour of its own."""


def drawing(lines: Sequence[str], name: str) -> Drawing:
    """Return the picture of these steps.

    Raises:
        ValueError: a line is not a step.
    """
    return _Draughtsman(notation.read(lines, name)).drawn()


class _Draughtsman:
    """Draws step by step. `_begun`: the place of the begin of each held message, by its number;
    `_bars`: those that have no end yet, by lane and kind."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        names = notation.lanes(steps)
        self._x = {one: round((n + 0.5) * 100 / len(names), 2) for n, one in enumerate(names)}
        self._made = Drawing([(full_name(one), x) for one, x in self._x.items()])
        self._made.title = next((_title(one.words) for one in steps if one.kind == "!"), "")
        holders = dict.fromkeys(one.lane for one in steps if one.kind == "holds")
        self._styles = dict(zip(holders, [*_STYLES, *["more"] * len(holders)], strict=False))
        self._begun: dict[int, float] = {}
        self._bars: dict[tuple[str, str], tuple[float, str]] = {}
        self._y = 10.0

    def drawn(self) -> Drawing:
        made, numbers = self._made, iter(range(len(self._steps)))
        for number in numbers:
            step, after = self._steps[number], self._steps[number + 1 : number + 2]
            made.said.append(sentence(step))
            if after and _answers(after[0], step, self._steps[:number]):
                made.said.append(sentence(after[0]))
                self._exchange(step, after[0])
                next(numbers)
            elif step.to:
                self._message(number, step)
            elif step.kind in ("...", "!"):
                self._across(step)
            else:
                self._event(step)
        made.height = self._y + 12
        for number, y in self._begun.items():
            self._arrow(self._steps[number], y, made.height - 4, "late", head=False)
        for lane, kind in list(self._bars):
            self._end(lane, kind, made.height)
        made.arrows = sum(step.kind in (WHOLE, LOST, HELD) for step in self._steps)
        return made

    def _exchange(self, step: Step, reply: Step) -> None:
        begin = self._label(step, f"→ {reply.words}")
        self._arrow(step, begin, begin + _SLOPE)
        self._arrow(reply, begin + _SLOPE, begin + 2 * _SLOPE, "answer")
        self._y = begin + 2 * _SLOPE + 4

    def _message(self, number: int, step: Step) -> None:
        if step.kind == LATE:
            (first, *_) = notation.under_way(step, self._steps[:number])
            end = self._y + 6
            self._arrow(step, self._begun.pop(first), end, "late")
            self._y = end + 6
            return
        begin = self._label(step)
        self._y = begin + _SLOPE + 4
        if step.kind == HELD:
            self._begun[number] = begin
            self._made.fates = ["late"]
            self._y = begin + 4
        elif step.kind == LOST:
            x1, x2 = self._x[step.lane], self._x[step.to]
            stop = round(x2 - (x2 - x1) * 0.3, 2)
            self._made.lines.append(Line(x1, begin, stop, begin + _SLOPE, "lost", False))
            self._made.crosses.append((stop, begin + _SLOPE))
            self._y += 2
        else:
            self._arrow(step, begin, begin + _SLOPE)

    def _across(self, step: Step) -> None:
        made = self._made
        if step.kind == "...":
            made.cuts.append(self._y + 4)
            made.labels.append(Label(50, self._y + 18, "middle", step.words, "cut"))
            self._y += 30
            return
        self._y += 4
        made.moments.append(Moment(self._y, 0))
        self._y += 3
        self._text(step.words, 50, "middle", "broken")

    def _event(self, step: Step) -> None:
        lane, kind, top = step.lane, step.kind, self._y + 8
        x = self._x[lane]
        words = step.words if kind == "note" else in_words(step)
        if kind in notation.BEGINS:
            self._made.marks.append((x, top, _FAULT))
            self._bars[lane, kind] = top, words
        elif kind in notation.ENDS:
            self._end(lane, notation.ENDS[kind], top)
        elif kind != "note":
            for held in ("holds", "loses"):
                self._end(lane, held, top)
            if kind != "frees":
                self._bars[lane, kind] = top, words
        style = "fault" if kind in notation.BEGINS or kind in notation.ENDS else ""
        style = f"grant {self._styles[lane]}" if kind in notation.HOLDS else style
        self._text(words, x, "start" if x <= 50 else "end", style)

    def _end(self, lane: str, kind: str, bottom: float) -> None:
        """End a bar of a lane, if there is one."""
        if (lane, kind) not in self._bars:
            return
        top, words = self._bars.pop((lane, kind))
        family = _FAULT if kind in notation.BEGINS else ""
        what = "fault" if kind == "is cut off" else "stop"
        if not family:
            what = f"{'hold' if kind == 'holds' else 'past'} {self._styles[lane]}"
        title = f"{full_name(lane)} {words}"
        height = round(max(4.0, bottom - top), 1)
        self._made.bars.append(Bar(self._x[lane], top, height, what, title, family))

    def _arrow(self, step: Step, y1: float, y2: float, what: str = "", head: bool = True) -> None:
        x1, x2 = self._x[step.lane], self._x[step.to]
        if not head:  # it never arrives
            x2 = round(x2 - (x2 - x1) * 0.15, 2)
        self._made.lines.append(Line(x1, y1, x2, y2, what, head))

    def _label(self, step: Step, answer: str = "") -> float:
        """Write the words of a message next to the lane of its sender; return where it begins."""
        x = self._x[step.lane]
        anchor = "start" if x < self._x[step.to] else "end"
        narrow = len(step.words) + bool(answer) + len(answer) > beside(x, anchor, _PHONE)
        style = {LOST: "odd lost", HELD: "odd late"}.get(step.kind, "")
        label = Label(x, self._y + _LINE - 2, anchor, step.words, style, answer, narrow)
        self._made.labels.append(label)
        return self._y + _LABEL

    def _text(self, text: str, x: float, anchor: str, what: str) -> None:
        for line in wrap(with_units(text), beside(x, anchor, _PHONE)):
            self._made.labels.append(Label(x, self._y + _LINE - 1, anchor, line, what))
            self._y += _LINE
        self._y += 6


def _answers(reply: Step, step: Step, before: Sequence[Step]) -> bool:
    """Return whether both fit in one row: a request, and the answer that comes at once."""
    both = (reply.lane, reply.to) == (step.to, step.lane)
    at_once = reply.kind == step.kind == WHOLE
    short = len(step.words) + 3 + len(reply.words) <= notation.MOST_WORDS
    # A step that answers an earlier request is no request.
    ways = [(one.lane, one.to) for one in before if one.kind in (WHOLE, LATE)]
    answers = ways.count((step.to, step.lane)) > ways.count((step.lane, step.to))
    return both and at_once and short and not answers


def _title(words: str) -> str:
    return words[:1].upper() + words[1:]
