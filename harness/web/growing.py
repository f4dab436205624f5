"""A run that goes on: what it has done so far and what its checkers have found, from its
harness.log.

The run writes there twice a second what a person sees in the terminal. So it is followed without
reading its history, and whoever looks costs it nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from fencepost.harness import locked
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute.progress import Status, read
from fencepost.harness.execute.timed import WHILE_S
from fencepost.harness.results import results

_HEAD, _TAIL = 16 << 10, 48 << 10
"""Bytes of the log that are read, of its beginning and of its end."""
_RATE_S = 3.0
_SHOWN_S = 120.0
_RUNNING = "running"


@dataclass(frozen=True)
class Bar:
    """Holds a second between two lines of the log; times in s since the run's start."""

    start_s: float
    end_s: float
    rate: float
    fault: bool


@dataclass(frozen=True)
class Growth:
    """`now` is None as long as nothing was written. `left_s`: for how long clients still work,
    None where nobody knows. `judging`: its clients are done, and its verdict is being made;
    `at_the_end`: it is not judged before that, as short runs are not."""

    now: Status | None
    phase: str
    rate: float
    left_s: float | None
    part: float
    bars: list[Bar]
    judging: bool
    at_the_end: bool

    @property
    def most(self) -> float:
        return max((bar.rate for bar in self.bars), default=0.0)


def growth(run: Path) -> Growth:
    """What is known of a run that goes on; of a long one, of the segment that does."""
    place, number = _place(run)
    said = _statuses(place / "harness.log")
    judging = not locked.is_live(place / "history.jsonl") and (place / "history.jsonl").exists()
    test: dict[str, Any] = {}
    with suppress(BadArguments):  # it is not written yet
        test = results.read_test(place)
    at_the_end = not test.get("until") and (test.get("time_s") or 0.0) < WHILE_S
    if not said:
        return Growth(None, "starting", 0.0, None, 0.0, [], False, at_the_end)
    now = said[-1]
    phase = "judging" if judging else now.phase
    left_s, part = _left(test, said) if now.phase == _RUNNING and not judging else (None, 0.0)
    lately = [one for one in said if one.elapsed_s >= now.elapsed_s - _SHOWN_S]
    return Growth(
        now,
        f"segment {number}, {phase}" if number else phase,
        _rate([one for one in said if one.elapsed_s >= now.elapsed_s - _RATE_S]),
        left_s,
        part,
        [
            Bar(one.elapsed_s, other.elapsed_s, _rate([one, other]), bool(other.on))
            for one, other in pairwise(lately)
        ],
        judging,
        at_the_end,
    )


def _place(run: Path) -> tuple[Path, int]:
    """The folder that is written to, and the number of its segment, 0 if it is none."""
    if results.is_long(run):
        parts = sorted(run.glob(f"{results.SEGMENTS}/*/harness.log"))
        if parts:
            return parts[-1].parent, int(parts[-1].parent.name)
    return run, 0


def _statuses(log: Path) -> list[Status]:
    """Its first lines and its last ones, in order."""
    with suppress(OSError), log.open("rb") as file:
        head = file.read(_HEAD)
        size = file.seek(0, 2)
        file.seek(max(size - _TAIL, len(head)))
        if file.tell() > len(head):
            # Lines that are cut on either side of the gap are none.
            head = head[: head.rfind(b"\n") + 1]
            file.readline()
        return read((head + file.read()).decode(errors="replace"))
    return []


def _rate(said: Sequence[Status]) -> float:
    """Holds a second. Nothing is known of them where the count is less than before."""
    if len(said) < 2 or said[-1].elapsed_s <= said[0].elapsed_s:
        return 0.0
    return max(said[-1].holds - said[0].holds, 0) / (said[-1].elapsed_s - said[0].elapsed_s)


def _left(test: Mapping[str, Any], said: Sequence[Status]) -> tuple[float | None, float]:
    """For how long clients still work, in s, and which part of it is done."""
    time_s = test.get("time_s")
    if not time_s or test.get("scenario"):
        return None, 0.0
    began = next(one.elapsed_s for one in said if one.phase == _RUNNING)
    done = min(said[-1].elapsed_s - began, time_s)
    return time_s - done, done / time_s
