"""Judges stored runs, as many at a time as there are processors, in forks of this process.

A fork has imported already all that judging takes, which is half a second that each new process
would need. It gives all its memory back when it is over, and one that is killed takes no other with
it. A process that carries out a run has threads and must not fork: see judge_process.py.
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

from fencepost.checker.history.history import HistoryError
from fencepost.harness import process
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.judge.judge import judge
from fencepost.harness.judge.judge_process import Found, unjudged
from fencepost.harness.results import results
from fencepost.report.pages import page

_FORK = multiprocessing.get_context("fork")


def rejudge(places: Sequence[Path], judged: Callable[[Path, Found], object]) -> None:
    """Judge the runs in these folders again; hand the results of each to `judged`, in order.

    At its end all that were begun are over, after an error as well.
    """
    page.prepare("run.html")
    # The longest first, so that none is left alone at the end.
    coming = sorted(places, key=lambda place: (place / "history.jsonl").stat().st_size)
    waiting = list(reversed(places))
    going: dict[Connection, _Fork] = {}
    found: dict[Path, Found] = {}
    try:
        while coming or going:
            while coming and len(going) < max(2, os.cpu_count() or 2):
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
    """A process that judges the run in `place`. `said` can be read once that is done."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.said, says = _FORK.Pipe(duplex=False)
        self._process: ForkProcess = _FORK.Process(target=_judge, args=(place, says))
        self._process.start()
        says.close()

    def found(self) -> Found:
        """The run's results once it is judged; without a verdict, why there is none."""
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
    # A Ctrl-C is for the process that waits for this one.
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    try:
        judge(place)
    except (BadArguments, Crashed, HistoryError, OSError) as error:
        says.send(str(error))
    except BaseException:
        says.send(traceback.format_exc())
    else:
        says.send("")
