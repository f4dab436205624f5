"""The live verdict of a run, from a separate process that reads its history as it grows.

    python -m fencepost.harness.judge.live_check FOLDER EVERY_S

It looks every EVERY_S seconds. Later it looks less often, at least once a minute, so that looking
takes a tenth of the time. It keeps the ops it has read, and reads only new ones. After each look it
writes a line with the violations so far, and those that end the run:
{"until_s": 12.5, "broken": {"lease_exclusion": "..."}, "stops": ["lease_exclusion"]}.
It ends with the process that started it.

Ops reach the file a little out of order, and those of a stopped client late. So a checker counts as
broken only if two looks in a row find it so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fencepost.checker.checker import Run
from fencepost.checker.checkers import check
from fencepost.checker.history.history import HistoryError, Tail
from fencepost.harness import process
from fencepost.harness.results import results
from fencepost.harness.spec.early_stop import at_the_end, first_violation, stops

EVERY_S = 1.0
"""The initial pause between two looks."""
_SHARE = 10
_MOST_S = 45.0


@dataclass(frozen=True)
class Seen:
    """Violations up to `until_s` of the run, by checker, in a sentence each.

    `stops`: those of them that end the run. `ended`: why the live check has ended, if it has. The
    verdict at the run's end does not depend on it.
    """

    until_s: float = 0.0
    broken: Mapping[str, str] = field(default_factory=dict)
    stops: Sequence[str] = ()
    ended: str = ""


class Follower:
    """Looks at a history repeatedly. `test` describes its run, as test.json does."""

    def __init__(self, path: Path, test: Mapping[str, Any]) -> None:
        self._tail = Tail(path)
        self._test = test
        self._names = [name for name in test["checkers"] if not at_the_end(name)]
        self._before: set[str] = set()

    def look(self) -> Seen:
        """Return what this look and the one before have both found. A history without a beginning
        is empty.

        Raises:
            HistoryError: it is no history.
        """
        history = self._tail.read()
        verdicts = check(Run(history, self._test), self._names)
        del verdicts["faults"]
        now = {name: found for name, found in verdicts.items() if found.valid is False}
        broken = {name: found for name, found in now.items() if name in self._before}
        self._before = set(now)
        words = {
            name: str((first_violation({name: found}) or {}).get("what") or found.summary)
            for name, found in broken.items()
        }
        ending = [
            name
            for name, found in broken.items()
            if stops(name, found.valid, found.details, self._test)
        ]
        return Seen(history.end_ns / 1e9, words, ending)


class LiveVerdict:
    """Follows the run in `folder` within its `with` block; `seen` are the findings so far.

    `stopped` is the first checker whose violation ends the run.
    """

    def __init__(self, folder: Path, every_s: float = EVERY_S):
        self.seen = Seen()
        self.stopped = ""
        self._process = process.begin(__name__, str(folder), str(every_s), out=subprocess.PIPE)
        self._thread = threading.Thread(target=self._listen, name="live verdict", daemon=True)

    def __enter__(self) -> LiveVerdict:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._thread.join()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None and self._process.stderr is not None
        for line in self._process.stdout:
            self.seen = Seen(**json.loads(line))
            if self.seen.stops and not self.stopped:
                self.stopped = self.seen.stops[0]
        why = process.why(self._process.stderr.read(), self._process.wait())
        self.seen = replace(self.seen, ended=why)


def main() -> None:
    """Follow the run of the named folder, until standard input ends."""
    folder, every_s = Path(sys.argv[1]), float(sys.argv[2])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    follower = Follower(folder / "history.jsonl", results.read_test(folder))
    pause_s = every_s
    while True:
        time.sleep(pause_s)
        began = time.monotonic()
        with suppress(HistoryError):  # the judgement at the run's end reports the error
            seen = follower.look()
            shown = {"until_s": seen.until_s, "broken": seen.broken, "stops": seen.stops}
            print(json.dumps(shown), flush=True)
        pause_s = min(max(every_s, _SHARE * (time.monotonic() - began)), _MOST_S)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
