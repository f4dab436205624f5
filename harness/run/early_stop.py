"""Checks the history while it grows, for a run that stops at a violation (`--until`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fencepost.checker import history
from fencepost.checker.checker import Run
from fencepost.checker.checkers import CHECKERS, check
from fencepost.checker.verdict import Verdict
from fencepost.harness.errors import BadArguments

# The pause between two checks at first; later so long that checking takes a tenth of the time.
_EVERY_S = 1.0
_SHARE = 10
ANY = "any"
"""In `until`: a violation that any checker finds stops the run."""


def at_the_end(name: str) -> bool:
    """Whether this checker can judge only a run that is over."""
    return name == "faults" or (name in CHECKERS and CHECKERS[name].at_the_end)


def stopping(test: Mapping[str, Any]) -> list[str]:
    """The checkers whose violations stop the run that test.json describes.

    Older versions stored `until_violation: true` for any.
    """
    until = test.get("until") or ([ANY] if test.get("until_violation") else [])
    names = [name for name in test["checkers"] if not at_the_end(name)]
    return names if ANY in until else [name for name in names if name in until]


def check_until(until: Iterable[str], checkers: Mapping[str, str | None]) -> None:
    """Raise BadArguments if a name in `until` is no checker that can stop this run.

    `checkers` are the test's: None, or the reason why the checker is not run.
    """
    run = [name for name, why in checkers.items() if why is None and not at_the_end(name)]
    for name in until:
        if name == ANY:
            continue
        valid = f"choose from: {', '.join((*run, ANY))}"
        if at_the_end(name):
            raise BadArguments(f"until {name}: it is judged only once the run is over; {valid}")
        if name not in checkers:
            raise BadArguments(f"until {name}: there is no such checker; {valid}")
        if why := checkers[name]:
            raise BadArguments(f"until {name}: this test does not run it ({why}); {valid}")


class EarlyStop:
    """A thread that checks the history so far; `seen` is the checker that found a violation.

    Ops reach the file a little out of order, and those of a stopped client late. So a violation
    counts only if two checks in a row find it.
    """

    def __init__(self, path: Path, test: Mapping[str, Any]) -> None:
        self.seen = ""
        self._path = path
        self._test = test
        self._names = stopping(test)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> EarlyStop:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _loop(self) -> None:
        pause_s, before = _EVERY_S, set[str]()
        while not self._over.wait(pause_s):
            began = time.monotonic()
            now = self._look()
            if again := before & now:
                self.seen = min(again)
                return
            before = now
            pause_s = max(_EVERY_S, _SHARE * (time.monotonic() - began))

    def _look(self) -> set[str]:
        """The checkers that find a violation in the history so far."""
        try:
            found = check(Run(history.read(self._path), self._test), self._names)
        except (OSError, history.HistoryError):
            return set()  # nothing is there yet
        return {name for name in self._names if found[name].valid is False}


def first_violation(verdicts: Mapping[str, Verdict]) -> dict[str, Any] | None:
    """The time, the checker and the description of the first violation; None if there is none."""
    found = [
        (int(piece["time_ns"]), name, str(piece.get("what", "")))
        for name, verdict in verdicts.items()
        if verdict.valid is False
        for piece in verdict.evidence
        if "time_ns" in piece
    ]
    if not found:
        return None
    time_ns, name, what = min(found)
    return {"time_s": time_ns / 1e9, "checker": name, "what": what}
