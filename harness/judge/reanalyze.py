"""Judges stored runs in forks of this process, one per processor at a time.

A fork has already imported all that judging needs, which takes a new process half a second. It
returns all its memory at its end, and one that is killed does not affect the others. A process
that carries out a run has threads and must not fork: see judge_process.py.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path

from fencepost import processors
from fencepost.checker.history.history import HistoryError
from fencepost.harness import process
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.judge.judge import judge
from fencepost.harness.judge.judge_process import Found, unjudged
from fencepost.harness.results import results
from fencepost.report.pages import page

_FORK = multiprocessing.get_context("fork")


def rejudge(places: Sequence[Path], judged: Callable[[Path, Found], object]) -> None:
    """Judge the runs in these folders again; pass the results of each to `judged`, in order.

    At its end all processes have ended, even after an error.
    """
    page.prepare("run.html")
    # The longest first, so that none runs alone at the end.
    coming = sorted(places, key=lambda place: (place / "history.jsonl").stat().st_size)
    waiting = list(reversed(places))
    going: dict[Connection, _Fork] = {}
    found: dict[Path, Found] = {}
    try:
        while coming or going:
            while coming and len(going) < max(2, processors.count()):
                fork = _Fork(coming.pop())
                going[fork.said] = fork
            for said in wait(list(going)):
                assert isinstance(said, Connection)
                fork = going.pop(said)
                found[fork.place] = fork.found()
            while waiting and waiting[-1] in found:
                place = waiting.pop()
                judged(place, found.pop(place))
    finally:
        for fork in going.values():
            fork.found()


class _Fork:
    """A process that judges the run in `place`. `said` can be read once it has ended."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.said, says = _FORK.Pipe(duplex=False)
        self._process: ForkProcess = _FORK.Process(target=_judge, args=(place, says))
        self._process.start()
        says.close()

    def found(self) -> Found:
        """Return the run's results once it is judged; without a verdict, the reason."""
        try:
            why = self.said.recv()
        except EOFError:
            why = ""
        self.said.close()
        self._process.join()
        code = self._process.exitcode or 0
        try:
            if code == 0 and not why:
                return results.read(self.place)
            return unjudged(process.why(why.encode(), code))
        except BadArguments as error:
            return unjudged(str(error))


def _judge(place: Path, says: Connection) -> None:
    # Only the process that waits for this one handles Ctrl-C.
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    try:
        judge(place)
    except (BadArguments, Crashed, HistoryError, OSError) as error:
        says.send(str(error))
    except MemoryError:
        says.send("the memory did not suffice to judge it")
    except BaseException:
        says.send(traceback.format_exc())
    else:
        says.send("")
