"""Judges runs in separate processes while another run is in progress here.

    python -m fencepost.harness.judge.judge_process FOLDER

    {"notes": [...], "written": N} on stdin

The verdict is in the run's results.json. A separate process returns all its memory, and does not
slow the threads of the run in progress.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fencepost.checker.history.history import HistoryError
from fencepost.harness import process
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.judge.judge import judge
from fencepost.harness.results import results
from fencepost.harness.spec.early_stop import stops

_NICE = 10
"""The run in progress has priority."""
_LONGEST_S = 3600
"""Time limit for one run; a segment takes seconds."""

Found = dict[str, Any]


class Process:
    """A process that judges the run in `place`."""

    def __init__(self, place: Path, notes: list[str] | None, written: int | None) -> None:
        self.place = place
        self._notes = notes or []
        self._process = process.begin(__name__, str(place), out=subprocess.DEVNULL)
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended with an error
            self._process.stdin.write(json.dumps({"notes": notes, "written": written}).encode())
            self._process.stdin.close()
        self._process.stdin = None

    def found(self) -> Found:
        """Return the run's results once it is judged; without a verdict, the reason."""
        try:
            _, said = self._process.communicate(timeout=_LONGEST_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            why = f"judging it took more than {_LONGEST_S} s; `fencepost analyze` tries again"
            return unjudged(why, self._notes)
        try:
            if self._process.returncode == 0:
                return results.read(self.place)
            why = process.why(said, self._process.returncode)
        except BadArguments as error:
            why = str(error)
        return unjudged(why, self._notes)


def unjudged(why: str, notes: Sequence[str] = ()) -> Found:
    """Return the results of a run that could not be judged, with its other notes."""
    said = [*notes, f"It could not be judged: {why}"]
    return {"valid": "unknown", "checkers": {}, "run_notes": said}


class Judging:
    """Judges runs one after another, and passes the results of each to `judged`.

    At the end of its block all are judged, even after an error in it.
    """

    def __init__(self, judged: Callable[[Path, Found], object]) -> None:
        self._judged = judged
        self._begun: Process | None = None
        self._last: Found = {}

    def __enter__(self) -> Judging:
        return self

    def __exit__(self, *_: object) -> None:
        self._await()

    def begin(
        self, place: Path, notes: list[str] | None = None, written: int | None = None
    ) -> None:
        """Begin to judge a run, once the one before is judged."""
        self._await()
        self._begun = Process(place, notes, written)

    def stops(self, test: Mapping[str, Any]) -> bool:
        """Wait for the last run; return whether one of its verdicts stops the run that test.json
        describes (`until`)."""
        self._await()
        checkers = self._last.get("checkers") or {}
        return any(stops(name, one.get("valid"), one, test) for name, one in checkers.items())

    def _await(self) -> None:
        if self._begun is not None:
            begun, self._begun = self._begun, None
            self._last = begun.found()
            self._judged(begun.place, self._last)


def main() -> None:
    """Judge the run of the named folder."""
    asked = json.loads(sys.stdin.buffer.read())
    os.nice(_NICE)
    try:
        judge(Path(sys.argv[1]), asked["notes"], asked["written"])
    except (BadArguments, Crashed, HistoryError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
