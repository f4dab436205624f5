"""What a run is doing: reported twice a second, and written to the run's harness.log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from fencepost.harness.run.boundedlog import BoundedLog
from fencepost.harness.run.recorder import Recorder
from fencepost.nemesis.director import Director

_EVERY_S = 0.5


@dataclass(frozen=True)
class Status:
    """What a run is doing, for the person who waits. `on` describes the faults that are on."""

    phase: str
    elapsed_s: float
    ops: int
    holds: int
    on: list[str]


Progress = Callable[[Status], None]


class Live:
    """A thread that reports the run's progress within its `with` block."""

    def __init__(self, recorder: Recorder, tell: Progress) -> None:
        self.director: Director | None = None
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

    def _loop(self) -> None:
        while not self._over.wait(_EVERY_S):
            on = self.director.on if self.director else []
            status = Status(
                self._phase,
                time.monotonic() - self._begun,
                self._recorder.written,
                self._recorder.counts["acquire", "ok"],
                [str(fault.arguments["words"]) for fault in on],
            )
            try:
                self._tell(status)
            except OSError:
                return  # no room for the log, or no terminal: the run goes on


@contextmanager
def logged(path: Path, progress: Progress) -> Iterator[Progress]:
    """A progress that is also written to a file, of which a night leaves the begin and the end."""
    log = BoundedLog(path)
    with closing(log):

        def tell(status: Status) -> None:
            on = "; ".join(status.on) or "none"
            log.write(
                f"{status.elapsed_s:8.3f} s  {status.phase}  ops {status.ops}  "
                f"holds {status.holds}  faults on: {on}\n"
            )
            progress(status)

        yield tell
