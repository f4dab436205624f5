"""A sequence diagram in plain lines, one for each step, in order of time.

    A > redis: SET job NX       a message that arrives
    A >x redis: GET job         a message that is lost
    redis >.. A: OK             a message that is held up
    redis ..> A                 the message that was held up arrives
    A holds                     also: loses (the lease ends, A does not know), frees
    A pauses: for 4 s           until it resumes; dies, starts; is cut off, is back
    A: acquired is True         a note
    ... the TTL passes          time passes
    ! two holders               the defect shows

A lane is one word. A capital letter alone is a client. The lanes are drawn in the order in which
the steps name them. Words may follow each verb, after a colon. A step that cannot follow those
before it is an error: a dead server sends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MOST_WORDS = 46
"""Largest number of characters of a message or of a wait: one line of a phone has room for 46."""
BEGINS = ("pauses", "dies", "is cut off")
ENDS = {"resumes": "pauses", "starts": "dies", "is back": "is cut off"}
HOLDS = ("holds", "loses", "frees")
WHOLE, LOST, HELD, LATE = ">", ">x", ">..", "..>"
_SAID = {
    WHOLE: "{} to {}: {}",
    LOST: "{} to {}: {} (lost)",
    HELD: "{} to {}: {} (held up)",
    LATE: "{} to {}: the message that was held up arrives",
}

_LANE = r"[A-Za-z][\w-]*"
_MESSAGE = re.compile(rf"({_LANE}) (>|>x|>\.\.) ({_LANE}): (\S.*)")
_ARRIVAL = re.compile(rf"({_LANE}) (\.\.>) ({_LANE})()")
_VERB = re.compile(rf"({_LANE}) ({'|'.join([*BEGINS, *ENDS, *HOLDS])})(?:: (\S.*))?")
_NOTE = re.compile(rf"({_LANE}): (\S.*)")
_ACROSS = re.compile(r"(\.\.\.|!) (\S.*)")


@dataclass(frozen=True)
class Step:
    """`kind` is a verb, an arrow, "note", "..." or "!". `lane` is the sender of a message."""

    kind: str
    lane: str = ""
    to: str = ""
    words: str = ""


def read(lines: Sequence[str], name: str) -> list[Step]:
    """Return the steps of these lines; `name` says in an error whose they are.

    Raises:
        ValueError: a line is not a step, or its step cannot follow the steps before it.
    """
    found: list[Step] = []
    for number, line in enumerate(lines, start=1):
        try:
            step = _read(line)
            _must_follow(step, found)
        except ValueError as error:
            raise ValueError(f"{name}, step {number}, {line!r}: {error}") from None
        found.append(step)
    return found


def lanes(steps: Sequence[Step]) -> list[str]:
    """Return the lanes, in the order in which the steps name them."""
    named = [lane for step in steps for lane in (step.lane, step.to)]
    return list(dict.fromkeys(filter(None, named)))


def sentence(step: Step) -> str:
    """Return a step for a reader who does not see the picture."""
    if step.to:
        return _SAID[step.kind].format(full_name(step.lane), full_name(step.to), step.words)
    if not step.lane:
        return f"The defect: {step.words}" if step.kind == "!" else f"Time passes: {step.words}"
    if step.kind == "note":
        return f"{full_name(step.lane)}: {step.words}"
    return f"{full_name(step.lane)} {in_words(step)}"


def in_words(step: Step) -> str:
    """Return a verb with its words."""
    if step.words:
        return f"{step.kind}: {step.words}"
    return f"{step.kind} the lock" if step.kind in HOLDS else step.kind


def full_name(lane: str) -> str:
    return f"client {lane}" if len(lane) == 1 and lane.isupper() else lane


def _read(line: str) -> Step:
    if "`" in line:
        raise ValueError("a picture has no code in backticks")
    if found := _MESSAGE.fullmatch(line) or _ARRIVAL.fullmatch(line):
        lane, arrow, to, words = found.groups()
        return Step(arrow, lane, to, _one_line(words))
    if found := _VERB.fullmatch(line):
        return Step(found[2], found[1], words=found[3] or "")
    if found := _ACROSS.fullmatch(line):
        return Step(found[1], words=_one_line(found[2]) if found[1] == "..." else found[2])
    if found := _NOTE.fullmatch(line):
        return Step("note", found[1], words=found[2])
    raise ValueError("this is not a step; report/figures/steps.py lists the forms")


def _one_line(words: str) -> str:
    if len(words) > MOST_WORDS:
        raise ValueError(f"there is room for {MOST_WORDS} characters, not {len(words)}")
    return words


def _must_follow(step: Step, before: Sequence[Step]) -> None:
    """Raise ValueError if a step cannot follow these."""
    if step.to and step.lane == step.to:
        raise ValueError(f"{step.lane} sends to itself")
    if step.kind in (WHOLE, LOST, HELD) and (what := _away(step.lane, before, step.kind == LOST)):
        raise ValueError(f"{step.lane} {what}, and sends nothing")
    if step.kind in (WHOLE, LATE) and (what := _away(step.to, before)):
        raise ValueError(f"{step.to} {what}, and gets nothing")
    if step.kind == LATE and not under_way(step, before):
        raise ValueError(f"no message from {step.lane} to {step.to} is held up")
    if step.kind in BEGINS and (what := _away(step.lane, before, step.kind != "is cut off")):
        raise ValueError(f"{step.lane} {what} already")
    if step.kind in ENDS and ENDS[step.kind] not in _on(step.lane, before):
        raise ValueError(f"it does not follow `{step.lane} {ENDS[step.kind]}`")
    held = [one.kind for one in before if one.lane == step.lane and one.kind in HOLDS][-1:]
    if step.kind == "holds" and (held == ["holds"] or _away(step.lane, before, True)):
        raise ValueError(f"{step.lane} holds already, or can do nothing")
    if step.kind in ("loses", "frees") and held in ([], ["frees"], [step.kind]):
        raise ValueError(f"{step.lane} has no hold")


def under_way(arrival: Step, before: Sequence[Step]) -> list[int]:
    """Return the numbers of the held messages that may now arrive: the first one does."""
    its = [(n, one.kind) for n, one in enumerate(before)
           if (one.lane, one.to) == (arrival.lane, arrival.to)]  # fmt: skip
    arrived = sum(kind == LATE for _, kind in its)
    return [n for n, kind in its if kind == HELD][arrived:]


def _away(lane: str, before: Sequence[Step], cut_off: bool = False) -> str:
    """Return why a lane takes no part; with `cut_off`, one that is cut off does."""
    on = [what for what in _on(lane, before) if what != "is cut off" or not cut_off]
    return on[0] if on else ""


def _on(lane: str, before: Sequence[Step]) -> list[str]:
    """Return the faults of a lane that have not ended."""
    on: list[str] = []
    for one in before:
        if one.lane == lane and one.kind in BEGINS:
            on.append(one.kind)
        elif one.lane == lane and one.kind in ENDS:
            on.remove(ENDS[one.kind])
    return on
