"""The progress of a run: reported twice a second, and written to the run's harness.log."""

from __future__ import annotations

import re
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fencepost.harness.boundedlog import BoundedLog
from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.judge.live_check import LiveVerdict, Seen
from fencepost.nemesis.director import Director

_EVERY_S = 0.5


@dataclass(frozen=True)
class Status:
    """The status of a run, for the person who watches. `on` describes the faults that are on.

    `holders` are the current holds, and `last` the latest ended ones, in words. `broken`: the
    violations that checkers have found so far, a sentence per checker; `judged_s`: the time in the
    run that they have covered, 0 before their first look. `unjudged`: why the live check has ended.
    """

    phase: str
    elapsed_s: float
    ops: int
    holds: int
    on: list[str]
    broken: Mapping[str, str] = field(default_factory=dict)
    judged_s: float = 0.0
    holders: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    unjudged: str = ""


Progress = Callable[[Status], None]


class Live:
    """A thread that reports the run's progress within its `with` block."""

    def __init__(self, recorder: Recorder, tell: Progress) -> None:
        self.director: Director | None = None
        self._verdict: LiveVerdict | None = None
        self._phase = ""
        self._recorder = recorder
        self._tell = tell
        self._begun = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> Live:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def say(self, phase: str) -> None:
        self._phase = phase

    def follow(self, verdict: LiveVerdict | None) -> None:
        """Also report what this function returns."""
        self._verdict = verdict

    def _loop(self) -> None:
        failed = False
        while not self._over.wait(_EVERY_S):
            try:
                self._tell(self._status())
            except OSError:
                return  # The disk or the terminal fails; the run continues.
            except Exception:  # a defect: shown once, and the next status may be fine
                if not failed:
                    traceback.print_exc()
                failed = True

    def _status(self) -> Status:
        on = self.director.on if self.director else []
        holding, now = self._recorder.holding, self._recorder.now()
        seen = self._verdict.seen if self._verdict else Seen()
        return Status(
            self._phase,
            time.monotonic() - self._begun,
            self._recorder.written,
            self._recorder.counts["acquire", "ok"],
            [str(fault.arguments["words"]) for fault in on],
            seen.broken,
            seen.until_s,
            [held.describe(now) for held in holding.on],
            [held.describe(now) for held in holding.last],
            seen.ended,
        )


@contextmanager
def logged(path: Path, progress: Progress) -> Iterator[Progress]:
    """A progress that is also written to a file; of a long run, the file keeps the begin and the
    end."""
    log = BoundedLog(path)
    with closing(log):

        def tell(status: Status) -> None:
            on = "; ".join(status.on) or "none"
            judged = ""
            if status.judged_s:
                broken = ", ".join(status.broken) or "nothing"
                judged = f"  broken up to {status.judged_s:.1f} s: {broken}"
            if status.unjudged:
                judged += f"  not judged any more before its end: {status.unjudged}"
            log.write(
                f"{status.elapsed_s:8.3f} s  {status.phase}  ops {status.ops}  "
                f"holds {status.holds}  faults on: {on}{judged}\n"
            )
            progress(status)

        yield tell


_LOGGED = re.compile(
    r" *([\d.]+) s  (.+?)  ops (\d+)  holds (\d+)  faults on: (.*?)"
    r"(?:  broken up to ([\d.]+) s: (.*?))?(?:  not judged any more before its end: (.*))?"
)


def read(lines: str) -> list[Status]:
    """Parse a harness.log, with the names of checkers only. Skip incomplete lines, and those that
    mark omitted ones."""
    found = []
    for line in lines.split("\n")[:-1]:
        if (said := _LOGGED.fullmatch(line)) is None:
            continue
        elapsed, phase, ops, holds, on, judged, broken, unjudged = said.groups()
        names = [] if broken in (None, "nothing") else broken.split(", ")
        faults = [] if on == "none" else on.split("; ")
        found.append(
            Status(
                phase,
                float(elapsed),
                int(ops),
                int(holds),
                faults,
                dict.fromkeys(names, ""),
                float(judged or 0.0),
                unjudged=unjudged or "",
            )
        )
    return found
