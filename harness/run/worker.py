"""The harness' side of a worker: starts it, sends it ops, takes its events.

A thread reads all that the worker writes until it ends. An op that it had begun by then is
completed as `info`, because it is not known whether it happened.

What it writes is checked first (hearing.py): a line that is no event is set aside.

Some of its events answer no op that it was sent: what a library reports by itself (`lost`,
`renewed`) and the client's own `close`. They are recorded, and nobody here waits for them.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from fencepost.checker.history import SPONTANEOUS
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.processes import CLIENT, own
from fencepost.harness.remote.remote import Remote, RemoteError
from fencepost.harness.run.answer import Answer, Clock, Cut, Idle, Over, Point, Ready
from fencepost.harness.run.driver import Driver
from fencepost.harness.run.event import Event
from fencepost.harness.run.hearing import Hearing
from fencepost.harness.run.lines import Lines, TooLong
from fencepost.harness.run.recorder import Recorder
from fencepost.workloads.critical_section import work_seed

# A client that comes up takes a second; on a machine that has too much to do, a hundred.
_START_S = 180.0
# After so long, and again after each time as long, is said which client is waited for.
_SLOW_S = 5.0
# A client reads orders between two ops, and some ops take a while.
_CLOCK_S = 10.0
# How long a client may take to close its sessions and connections before it is killed.
_END_S = 2.0
_CLOSE = "close"
# Answers that nobody has waited for yet: one or two, unless a client answers what nobody asked.
_ANSWERS = 20
Answered = TypeVar("Answered", bound=Answer)


class Worker:
    """One worker on one node. `pid` is its pid there, `started` when that process was started."""

    def __init__(
        self,
        remote: Remote,
        recorder: Recorder,
        setup: dict[str, Any],
        command: Sequence[str],
    ) -> None:
        self.node = remote.node
        self.pid = 0
        self.started: str | None = None
        self.process: int = setup["process"]
        self._remote = remote
        self._stride: int = setup["stride"]
        self._seed = work_seed(setup["seed"], self.process)
        self._generates = True
        self._driver: Driver | None = None
        self._recorder = recorder
        self.working: tuple[dict[str, Any], int] | None = None
        self._open: Event | None = None
        self._closing: Event | None = None
        self._answers: deque[Answer] = deque(maxlen=_ANSWERS)
        self._completions: deque[dict[str, Any]] = deque()
        self._point: str | None = None
        self._changed = threading.Condition()
        self._gone = False
        self._said = ""
        # It works by itself; an op that it was sent has no answer; all that it wrote was heard.
        self._works = self._asked = self._heard_all = False
        self._hearing = Hearing(self.node, self.process, self._stride, recorder.now, recorder.aside)
        self._begun = time.monotonic()
        self._program = remote.spawn(command)
        self._reader = threading.Thread(target=self._read, name=f"read {self.node}", daemon=True)
        self._reader.start()
        # Read all the time: a library that logs much would block at a full pipe.
        self._listener = threading.Thread(
            target=self._listen, name=f"hear {self.node}", daemon=True
        )
        self._listener.start()
        self._send({"control": "setup", **setup})

    def wait_ready(self, say: Callable[[str], None] = lambda words: None) -> None:
        """Wait until it is up; say so if that takes long.

        Raises:
            Crashed: with its last output, if it does not come up; or it gives the pid of a process
                that is not its own.
        """

        def slow() -> None:
            waited_s = time.monotonic() - self._begun
            say(f"waiting for {self.node}, which was started {waited_s:.0f} s ago")

        ready = self._answer(Ready, _START_S, slow)
        process = own(self._remote, ready.pid, CLIENT) if ready.pid > 0 else None
        if process is None:
            raise Crashed(
                f"the client on {self.node} says that its pid is {ready.pid}, and no process of "
                "its own has it: `ready` needs the pid of the program itself (docs/protocol.md)"
            )
        self.pid, self.started = process.pid, process.started
        self._generates = ready.generates

    def _answer(
        self, wanted: type[Answered], timeout_s: float, slow: Callable[[], None] = lambda: None
    ) -> Answered:
        def found() -> Answered | None:
            return next((one for one in self._answers if isinstance(one, wanted)), None)

        end = time.monotonic() + timeout_s
        with self._changed:
            while (left_s := end - time.monotonic()) > 0:
                if self._changed.wait_for(lambda: self._gone or found(), min(left_s, _SLOW_S)):
                    break
                slow()
            answer = found()
            if answer is not None:
                self._answers.remove(answer)
        if answer is None:
            words = self.last_words() or f"nothing within {timeout_s:.0f} s"
            asked = wanted.__struct_config__.tag
            raise Crashed(f"the worker on {self.node} did not say {asked!r}; it said: {words}")
        return answer

    def last_words(self) -> str:
        """What the program wrote to its standard error last."""
        return self._said

    def describe(self) -> str:
        """Describe what it is doing now."""
        with self._changed:
            if self._gone:
                doing = "its program has ended"
            elif self._open is not None:
                doing = f"its {self._open.f} has no answer yet"
            else:
                doing = "it is in no op"
        return f"{doing}; it said: {self._said}" if self._said else doing

    def do(self, f: str, value: dict[str, Any], timeout_s: float) -> dict[str, Any] | None:
        """Send an op; return its completion, or None if none came in time."""
        self.begin(f, value)
        return self.finish(timeout_s)

    def begin(self, f: str, value: dict[str, Any]) -> None:
        """Send an op and do not wait for it."""
        self._completions.clear()
        self._asked = True
        self._send({"f": f, "value": value})

    def wait_begun(self, timeout_s: float) -> bool:
        """Wait until the op that was sent is invoked or over; False if it is not in time."""
        with self._changed:
            return bool(
                self._changed.wait_for(
                    lambda: self._open is not None or self._completions or self._gone, timeout_s
                )
            )

    def finish(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the completion of the op that was begun; None if none came in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._completions or self._gone, timeout_s)
            return self._completions.popleft() if self._completions else None

    def work(self, settings: dict[str, Any], until_ns: int) -> None:
        """Let it run the generator until `until_ns` (since the test's start)."""
        self.working = (settings, until_ns)
        if not self._generates:
            self._driver = Driver(self, settings, self._seed, until_ns, self._recorder.now)
            return
        self._works = True
        self._send({"control": "work", "settings": settings, "until_ns": until_ns})

    def rest(self, timeout_s: float) -> bool:
        """End its work; False if it does not end in time."""
        self.working = None
        if self._driver is not None:
            return self._driver.rest(timeout_s)
        self._send({"control": "rest"})
        return self.wait_idle(timeout_s)

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until its work is over; False if it is not in time."""
        try:
            self._answer(Idle, timeout_s)
        except Crashed:
            return False
        return True

    def arm(self, point: str) -> None:
        with self._changed:
            self._point = None
        self._send({"control": "arm", "point": point})

    def disarm(self, point: str) -> None:
        self._send({"control": "disarm", "point": point})

    def wait_failpoint(self, point: str, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._point == point, timeout_s)

    @property
    def gone(self) -> bool:
        return self._gone

    @property
    def shown_clocks(self) -> tuple[str, ...]:
        return ("wall",)

    @property
    def reads_clock_file(self) -> bool:
        return False

    def mark_clock(self, clock: str) -> dict[str, Any]:
        return {}

    def look_at_clock(self, clock: str, mark: dict[str, Any]) -> tuple[float, float]:
        """Bounds of the offset of the wall clock that the program itself sees, in seconds.

        Both sides give the wall clock relative to the monotonic clock, so the answer's delay does
        not matter. Raise Crashed if the program does not answer in time.
        """
        with self._changed:
            others = (one for one in self._answers if not isinstance(one, Clock))
            self._answers = deque(others, _ANSWERS)
        self._send({"control": "clock"})
        shown = self._answer(Clock, _CLOCK_S)
        mine = json.loads(self._remote.run(["fencepost-node", "clocks", "node", "wall"]).out)
        low_ns, high_ns = shown.low_ns - mine["high_ns"], shown.high_ns - mine["low_ns"]
        return low_ns / 1e9, high_ns / 1e9

    def wait_gone(self, timeout_s: float) -> None:
        self._reader.join(timeout_s)

    def close(self) -> None:
        """Close its standard input; kill it if it does not end by that.

        First the program itself, so that its pump hands over what it had still to say.
        """
        assert self._program.stdin
        self._program.stdin.close()
        ended = False
        try:
            ended = self._ends()
            if not ended and self.pid:
                with suppress(RemoteError):
                    self._remote.signal(self.pid, signal.SIGKILL, self.started)
                    ended = self._ends()
        finally:
            if not ended:
                self._program.kill()
                self._program.wait()
        self._reader.join(2.0)

    def _ends(self) -> bool:
        try:
            self._program.wait(_END_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _send(self, message: dict[str, Any]) -> None:
        assert self._program.stdin
        try:
            self._program.stdin.write(msgspec.json.encode(message) + b"\n")
        except OSError:
            return  # it is gone, and `_gone` tells whoever waits

    def _read(self) -> None:
        assert self._program.stdout
        lines = Lines()
        while chunk := self._program.stdout.read(1 << 16):
            self._take(lines.take(chunk))
        if rest := lines.rest():
            self._take([rest])
        with suppress(OSError):
            self._end()

    def _take(self, lines: Sequence[bytes | TooLong]) -> None:
        heard = self._hearing.take(lines)
        events = heard.events
        # If the history cannot be written, the recorder remembers that and the run ends. Until
        # then this reads on, so that no client blocks at a full pipe.
        with suppress(OSError):
            if events:
                self._recorder.append(heard.lines, events)
        with self._changed:
            self._point = None  # a program that writes more is past its failpoint
            close = _last(events, lambda f: f == _CLOSE)
            if close is not None:
                self._closing = events[close] if events[close].type == "invoke" else None
            place = _last(events, lambda f: f != _CLOSE and f not in SPONTANEOUS)
            if place is not None:
                # What it is doing now; what came before in the same chunk is over. Its number
                # comes from ops alone: the close after an `info` still carries the old one.
                last = events[place]
                self._open = last if last.type == "invoke" else None
                self.process = last.process + (self._stride if last.type == "info" else 0)
            self._take_answers(heard.answers)
            if place is not None and events[place].type != "invoke":
                self._asked = False
                self._completions.append(msgspec.json.decode(heard.lines[place]))
                while len(self._completions) > 1:
                    self._completions.popleft()
            self._changed.notify_all()

    def _take_answers(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            match answer:
                case Point(point):
                    self._point = point
                case Cut(bytes=count):
                    why = f"its pump had to leave out {count} bytes, which nobody read in time"
                    self._hearing.miss(why, b"", count, lost=True)
                case Over():
                    self._heard_all = True
                case _:
                    self._works = self._works and not isinstance(answer, Idle)
                    self._answers.append(answer)

    def _listen(self) -> None:
        assert self._program.stderr
        said = b""
        while chunk := self._program.stderr.read(1 << 16):
            said = (said + chunk)[-3000:]
            self._said = said.decode(errors="replace").strip()

    def _end(self) -> None:
        self._listener.join(2.0)
        with self._changed:
            error = ["killed", "the worker is gone; whether this happened is not known"]
            # One that was heard to begin an op that it was sent does nothing else.
            unheard = self._asked and self._open is None
            if not self._heard_all and (self._works or unheard):
                self._recorder.aside.unheard(self.node, self._hearing.latest_ns)
            begun = [event for event in (self._open, self._closing) if event is not None]
            try:
                for event in begun:
                    self._recorder.op(event.process, "info", event.f, {}, error, self.node)
            finally:
                self._open = self._closing = None
                self._gone = True
                self._changed.notify_all()


def _last(events: list[Event], wanted: Callable[[str], bool]) -> int | None:
    """The index of the last event whose `f` is wanted; None if there is none."""
    places = range(len(events) - 1, -1, -1)
    return next((place for place in places if wanted(events[place].f)), None)
