"""Repeats some schedules of a hunt in a second process, and compares the runs.

A counterexample is worth something only if its schedule can be replayed. So nothing but the
schedule may decide a run: not the order of a set, not what earlier runs left in a module. The twin
has another hash seed and runs only these schedules, so both show as a difference. Meanwhile the
hunt continues. It ends with the first call or event that differs.

The twin starts once a hunt has lasted for some seconds: it costs a second of processor time, and
then as much as its schedules.
"""

from __future__ import annotations

import os
import pickle
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import IO, Any, Self

from fencepost.hunt.faults.registry import table
from fencepost.hunt.lock_error import LockError
from fencepost.hunt.run import Run
from fencepost.hunt.sim.network import Wire
from fencepost.hunt.sim.record import Row
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.unknown import Unknown

EVERY = 200
"""One of this many drawn schedules is repeated."""
AFTER_S = 10.0
"""How long a hunt lasts before the twin starts."""
_START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); from {} import serve; serve()"
)
_CUT = 160
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

Moment = tuple[int, str]
"""A call or an event of a run: its time in ns, and its words."""


class Trace:
    """Records the requests of a run, for comparison (Tap, hunt/sim/network.py)."""

    def __init__(self) -> None:
        self._calls: list[Moment] = []

    def handled(self, link: Wire, command: tuple[Any, ...], reply: Any) -> None:
        self._note(link, f"{_sent(link, command)}, which answers {reply}")

    def lost(self, link: Wire, command: tuple[Any, ...]) -> None:
        self._note(link, f"{_sent(link, command)}, which is lost")

    def refused(self, link: Wire) -> None:
        self._note(link, f"{link.client.name} cannot connect to {link.server.name}")

    def _note(self, link: Wire, words: str) -> None:
        self._calls.append((link.network.world.now, words))

    def moments(self, rows: Iterable[Row]) -> list[Moment]:
        """Return the requests and the events of the run by time."""
        events = [(row[0], _event(row)) for row in rows]
        return sorted((*self._calls, *events), key=lambda moment: moment[0])


def _sent(link: Wire, command: tuple[Any, ...]) -> str:
    return f"{link.client.name} sends {' '.join(map(str, command))} to {link.server.name}"


def _event(row: Row) -> str:
    _, process, type, f, value, error, node, _ = row
    words = f"{node or process} has {f} {type} {value}"
    if error is None:
        return words
    # Messages of urllib3 name a connection by its address, which decides nothing.
    return f"{words}, {error.kind}: {_ADDRESS.sub(' at ...', error.text)}"


@dataclass(frozen=True)
class Checked:
    """A schedule, and its run in a process of the hunt."""

    schedule: Schedule
    moments: list[Moment]


class Twin:
    """The second process of one hunt. A thread of the hunt's process waits for its answers."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._waiting: queue.SimpleQueue[Checked | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def take(self, checked: Iterable[Checked], lasted_s: float) -> None:
        """Repeat these schedules; `lasted_s` is how long the hunt has lasted.

        Raises Unknown if a run was different.
        """
        for one in checked:
            self._waiting.put(one)
        if self._thread is None and lasted_s >= AFTER_S and not self._waiting.empty():
            self._start()
        self._raise()

    def finish(self) -> None:
        """Wait for the answers to all schedules. Raises Unknown if a run was different."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START.format(__spec__.name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONHASHSEED": _other_hash_seed()},
        )
        self._thread = threading.Thread(target=self._compare_all, daemon=True)
        self._thread.start()

    def _compare_all(self) -> None:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        try:
            _send(process.stdin, sys.path, self._setting)
            while (one := self._waiting.get()) is not None and self._error is None:
                _send(process.stdin, one.schedule)
                self._error = difference(one.moments, pickle.load(process.stdout))
        except (EOFError, OSError, ValueError):  # ValueError: the pipe is closed at the end
            self._error = RuntimeError("the process that repeats schedules has ended")


def _send(pipe: IO[bytes], *things: object) -> None:
    for thing in things:
        pickle.dump(thing, pipe)
    pipe.flush()


def _other_hash_seed() -> str:
    return "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"


def difference(one: list[Moment], other: list[Moment]) -> Unknown | None:
    """Return the error for two runs of a schedule that differ, with their first difference."""
    for mine, yours in zip_longest(one, other, fillvalue=(-1, "nothing more")):
        if mine != yours:
            at_s = min(time for time, _ in (mine, yours) if time >= 0) / 1e9
            return Unknown(
                f"its runs cannot be repeated: two processes ran one schedule, and differed from "
                f"{at_s:.6f} s on. In one, {_cut(mine)}; in the other, {_cut(yours)}. Its code "
                "depends on more than the schedule, for example the order of a set of strings, "
                "id(), or data that a library keeps between runs. Use lists or sorted(), and "
                "random, time and uuid"
            )
    return None


def _cut(moment: Moment) -> str:
    time, words = moment
    at = f" at {time / 1e9:.6f} s" if time >= 0 else ""
    return (words if len(words) <= _CUT else f"{words[:_CUT]}...") + at


# The second process.


def serve() -> None:
    """Run the schedules that come on standard input, and answer with their moments."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # a lock that prints
    setting: Setting = pickle.load(source)
    actions = table(setting)
    Run(setting, Schedule(), actions).execute()  # imports take steps the first time
    while True:
        try:
            schedule = pickle.load(source)
        except EOFError:
            return
        _send(target, moments(setting, schedule))


def moments(setting: Setting, schedule: Schedule) -> list[Moment]:
    """Run a schedule; return what happened."""
    trace = Trace()
    run = Run(setting, schedule, table(setting), trace)
    try:
        run.execute()
    except (LockError, Unknown) as error:
        return [*trace.moments(run.rows), (run.world.now, f"the run ends: {error}")]
    return trace.moments(run.rows)
