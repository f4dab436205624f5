"""Looks at the history while it grows, for `--until-violation`."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from checker import history
from checker.checkers import check
from checker.verdict import Verdict

# How often is looked at first; later, so seldom that looking takes a tenth of the time.
_EVERY_S = 1.0
_SHARE = 10
# These are about how a run ended, and tell nothing of one that goes on.
_AT_THE_END = ("liveness", "faults")


class Watch:
    """A thread that checks what is there so far; `seen` is the checker that said no.

    Ops reach the file a little out of order, and a client that is stopped may hold one back: a
    violation counts once it was seen twice in a row.
    """

    def __init__(self, path: Path, test: Mapping[str, Any]) -> None:
        self.seen = ""
        self._path = path
        self._test = test
        self._names = [name for name in test["checkers"] if name not in _AT_THE_END]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> Watch:
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
        """The checkers that say no to what is there so far."""
        try:
            found = check(history.read(self._path), self._test, self._names)
        except (OSError, history.HistoryError):
            return set()  # nothing is there yet
        return {name for name in self._names if found[name].valid is False}


def first_violation(verdicts: Mapping[str, Verdict]) -> dict[str, Any] | None:
    """When and by what a promise was first broken; None where none was."""
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
