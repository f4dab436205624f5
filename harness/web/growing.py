"""Reads the state of a run in progress from its harness.log: progress, rates and findings so far.

The run writes its status line there twice a second. Reading the log instead of the history means
that watching a run does not slow it down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from fencepost import plainfile
from fencepost.harness import locked
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute.progress import Status, read
from fencepost.harness.execute.timed import WHILE_S
from fencepost.harness.results import results

_HEAD, _TAIL = 16 << 10, 48 << 10
"""Bytes that are read from the start and from the end of the log."""
_RATE_S = 3.0
_SHOWN_S = 120.0
_RUNNING = "running"


@dataclass(frozen=True)
class Bar:
    """Holds per second between two lines of the log; times in s since the start of the run."""

    start_s: float
    end_s: float
    rate: float
    fault: bool


@dataclass(frozen=True)
class Growth:
    """The state of a run in progress.

    `now` is None until the first status line. `left_s` is how long clients still have to work,
    None if that is unknown. `judging`: the clients have finished and the checkers are running.
    `at_the_end`: the run is too short to be judged before its end.
    """

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
    """Return the state of a run in progress; of a long run, that of its current segment."""
    place, number = _place(run)
    statuses = _statuses(place / "harness.log")
    judging = not locked.is_live(place / "history.jsonl") and (place / "history.jsonl").exists()
    test: dict[str, Any] = {}
    with suppress(BadArguments):  # test.json is not written yet
        test = results.read_test(place)
    at_the_end = not test.get("until") and (test.get("time_s") or 0.0) < WHILE_S
    if not statuses:
        return Growth(None, "starting", 0.0, None, 0.0, [], False, at_the_end)
    now = statuses[-1]
    phase = "judging" if judging else now.phase
    left_s, part = _left(test, statuses) if now.phase == _RUNNING and not judging else (None, 0.0)
    lately = [one for one in statuses if one.elapsed_s >= now.elapsed_s - _SHOWN_S]
    return Growth(
        now,
        f"segment {number}, {phase}" if number else phase,
        _rate([one for one in statuses if one.elapsed_s >= now.elapsed_s - _RATE_S]),
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
    """Return the folder that the run writes to, and its segment's number (0 for a short run)."""
    if results.is_long(run):
        parts = sorted(run.glob(f"{results.SEGMENTS}/[0-9][0-9][0-9][0-9]/harness.log"))
        if parts:
            return parts[-1].parent, int(parts[-1].parent.name)
    return run, 0


def _statuses(log: Path) -> list[Status]:
    """Return the statuses in the first and the last lines of a log, in order."""
    with suppress(OSError), plainfile.opened(log) as file:
        head = file.read(_HEAD)
        size = file.seek(0, 2)
        file.seek(max(size - _TAIL, len(head)))
        if file.tell() > len(head):
            # Drop the lines that are cut on either side of the gap.
            head = head[: head.rfind(b"\n") + 1]
            file.readline()
        return read((head + file.read()).decode(errors="replace"))
    return []


def _rate(statuses: Sequence[Status]) -> float:
    """Return holds per second; 0 if the count restarted in between."""
    if len(statuses) < 2 or statuses[-1].elapsed_s <= statuses[0].elapsed_s:
        return 0.0
    first, last = statuses[0], statuses[-1]
    return max(last.holds - first.holds, 0) / (last.elapsed_s - first.elapsed_s)


def _left(test: Mapping[str, Any], statuses: Sequence[Status]) -> tuple[float | None, float]:
    """Return how long clients still have to work, in s, and the fraction that is done."""
    time_s = test.get("time_s")
    if not time_s or test.get("scenario"):
        return None, 0.0
    began = next(one.elapsed_s for one in statuses if one.phase == _RUNNING)
    done = min(statuses[-1].elapsed_s - began, time_s)
    return time_s - done, done / time_s
