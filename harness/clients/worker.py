"""The harness' side of a worker: starts it, sends it ops, takes its events.

Its program is read until it ends (streams.py). An op that it had begun by then is completed as
`info`, because it is not known whether it happened. Its output is checked first (client_events.py):
a line that is no event is rejected. Answers to orders are kept until the harness takes them
(answers.py), and the client's events give its open op (open_op.py) and how its hold stands
(driven_hold.py).
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from fencepost.harness.clients.answer import (
    VERSIONS,
    Answer,
    Broken,
    Cancelled,
    Clock,
    Cut,
    Idle,
    Over,
    Point,
    Ready,
    Stopped,
    Successor,
    refusal,
)
from fencepost.harness.clients.answers import Answered, Answers
from fencepost.harness.clients.client_events import ClientEvents
from fencepost.harness.clients.driven_hold import DrivenHold
from fencepost.harness.clients.driver import Driver
from fencepost.harness.clients.open_op import OpenOp
from fencepost.harness.clients.present_process import PresentProcess
from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.clients.reigns import STOPPED, work_of
from fencepost.harness.clients.streams import Streams
from fencepost.harness.cluster.cluster import Spawn
from fencepost.harness.errors import Crashed
from fencepost.harness.lines import TooLong
from fencepost.harness.remote.processes import CLIENT, always_runs, kill_marked
from fencepost.harness.remote.remote import Remote
from fencepost.workloads.client.critical_section import work_seed
from fencepost.workloads.client.wire import Setup, written

# A client takes a second to start; on an overloaded machine, a hundred.
_START_S = 180.0
# A client reads orders between two ops, and some ops take a while.
_CLOCK_S = 10.0
# Exit codes: of a program that cannot be found; of one that a fault has killed, or whose connection
# was lost.
_NO_PROGRAM, _KILLED = 127, (None, -9, 137)


class Worker:
    """One worker on one node. `pid` is its pid there, `started` the start time of that process.

    `broken` is the client's own mistake: reported by it, shown by a line that it wrote, or its
    unexpected end. `called` is its program's name; `spawn` starts it, if the node's remote does
    not. `extends`: its lock has that verb, as its `ready` said. `counts`: it counts its requests.
    `gone`: its program has ended. `at_point`: the failpoint at which it has stopped, None if it has
    not. `cancelled`: how many calls of its lock it has cancelled; `cancelled_later`: the last one
    began after the request.
    """

    # Of a client's clocks, only the wall clock is shown (`look_at_clock`).
    shown_clocks: tuple[str, ...] = ("wall",)
    reads_clock_file = False

    def __init__(
        self,
        remote: Remote,
        recorder: Recorder,
        setup: Setup,
        command: Sequence[str],
        called: str = "the worker",
        spawn: Spawn | None = None,
    ) -> None:
        self.node = remote.node
        self._called = f"{called} on {remote.node}"
        self._remote = remote
        self._own = setup.own is not None
        self.counts = setup.steps
        self._seed = work_seed(setup.seed, setup.process)
        self._generates = self.extends = self._resigns = True
        self._stops = setup.stops
        self._answered: Counter[str] = Counter()
        self.promises: list[str] | None = None
        self.broken = ""
        self._driver: Driver | None = None
        self._recorder = recorder
        self.working: tuple[dict[str, Any], int] | None = None
        self._hold = DrivenHold()
        # Lock for the fields below, which the reading thread changes.
        self._changed = threading.Condition()
        self._answers = Answers(self._changed)
        self._doing = OpenOp(setup.process, setup.stride)
        self._present = PresentProcess(
            remote, self._changed, lambda: self._doing.closing, lambda: self.gone
        )
        self.at_point: str | None = None
        self.connection = 0
        self.cancelled, self.cancelled_later = 0, False
        self.gone = False
        # All its output was received; it is being closed; its exit code, once it has ended.
        self._heard_all = self._told_to_end = False
        self._code: int | None = None
        self._hearing = ClientEvents(
            self.node, setup.process, setup.stride, recorder.now, recorder.aside
        )
        self._begun = time.monotonic()
        self._streams = Streams((spawn or remote.spawn)(command), self.node)
        self._streams.read(self._take, self._end)
        self._send({"control": "setup", "versions": VERSIONS, **written(setup)})

    @property
    def process(self) -> int:
        """The client's present process number."""
        return self._doing.process

    @property
    def pid(self) -> int:
        process = self._present.now()
        return process.pid if process else 0

    @property
    def started(self) -> str | None:
        process = self._present.now()
        return process.started if process else None

    def wait_ready(self, say: Callable[[str], None] = lambda words: None) -> None:
        """Wait until it is up; report it if that takes long.

        Raises:
            Crashed: it does not come up (with its last output), has another protocol version, or
                gives the pid of a process that is not its own.
        """

        def slow() -> None:
            waited_s = time.monotonic() - self._begun
            say(f"waiting for {self.node}, which was started {waited_s:.0f} s ago")

        ready = self._answer(Ready, _START_S, slow)
        if why := refusal(ready, self._stops is not None):
            raise Crashed(f"{self._called} {why}")
        if not self._present.begin(ready.pid, ready.restarts):
            raise Crashed(
                f"the client on {self.node} reports pid {ready.pid}, which no process of its own "
                "has: `ready` needs the pid of the program itself (docs/protocol.md)"
            )
        self._generates, self.extends = ready.generates, ready.extends
        self._resigns = ready.resigns
        self.promises = ready.promises

    def _answer(
        self, wanted: type[Answered], timeout_s: float, slow: Callable[[], None] = lambda: None
    ) -> Answered:
        answer = self._answers.wait(wanted, timeout_s, lambda: self.gone or self.broken, slow)
        if answer is None and self.broken:
            raise Crashed(self.broken)
        if answer is None:
            asked = wanted.__struct_config__.tag
            raise Crashed(f"{self._called} did not report {asked!r}; {self._end_said(timeout_s)}")
        return answer

    def _end_said(self, waited_s: float) -> str:
        """Describe how its program ended, if it did, and its last output."""
        words = self.last_words()
        if self._code is None:
            return f"it said: {words or f'nothing within {waited_s:.0f} s'}"
        missing = " (its node lacks the program or its interpreter)"
        hint = missing if self._code == _NO_PROGRAM else ""
        return f"it ended with exit code {self._code}{hint}; it said: {words or 'nothing'}"

    def last_words(self) -> str:
        """Return the program's latest output on its standard error."""
        return self._streams.said

    def describe(self) -> str:
        """Describe its present op."""
        with self._changed:
            gone, op = self.gone, self._doing.op
        if gone:
            doing = "its program has ended"
        elif op is not None:
            last = self._present.latest()
            loops = last and always_runs(self._remote, last.pid, last.started)
            hint = ", and its program never waits: it may be in an endless loop"
            doing = f"its {op.f} has no answer yet{hint if loops else ''}"
        else:
            doing = "it is in no op"
        said = self.last_words()
        return f"{doing}; it said: {said}" if said else doing

    def do(self, f: str, value: dict[str, Any], timeout_s: float) -> dict[str, Any] | None:
        """Send an op; return its completion, or None if none came in time."""
        self.begin(f, value)
        return self.finish(timeout_s)

    def begin(self, f: str, value: dict[str, Any]) -> None:
        """Send an op and do not wait for it."""
        with self._changed:
            self._doing.sent()
        self._send({"f": f, "value": value})

    def wait_begun(self, timeout_s: float) -> bool:
        """Wait until the op that was sent has begun or ended; return False if it has not in
        time."""
        with self._changed:
            return bool(
                self._changed.wait_for(
                    lambda: self._doing.op or self._doing.completion or self.gone, timeout_s
                )
            )

    def finish(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the completion of the op that was begun; None if none came in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._doing.completion or self.gone, timeout_s)
            return self._doing.take_completion()

    def work(self, settings: dict[str, Any], until_ns: int) -> None:
        """Let it run the generator until `until_ns` (since the test's start)."""
        if not self.extends:
            settings = settings | {"extend": 0}
        self.working = (settings, until_ns)
        if not self._generates:
            work = work_of(settings, self._seed, self._stops, self._resigns)
            self._driver = Driver(self, work, until_ns, self._recorder.now)
            return
        self._doing.works = True
        self._send({"control": "work", "settings": settings, "until_ns": until_ns})

    def rest(self, timeout_s: float) -> bool:
        """End its work; return False if it does not end in time."""
        self.working = None
        if self._driver is not None:
            return self._driver.rest(timeout_s)
        self._send({"control": "rest"})
        return self.wait_idle(timeout_s)

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until its work has ended; return False if it does not end in time."""
        try:
            self._answer(Idle, timeout_s)
        except Crashed:
            return False
        return True

    def give_up(self, asked: dict[str, Any], deadline: int | None) -> dict[str, Any]:
        """Report a hold as lost for a client without a generator, if at most `left` ns of its lease
        remain: the generator that relies on its grants runs here. `deadline`: from the grant or its
        last extension. Return how the hold stands: `lost`, and its `deadline`."""
        hold = asked["hold"]
        with self._changed:
            deadline = self._hold.deadline(hold, deadline)
            lost = self._hold.is_lost(hold)
        if not lost and deadline is not None and self._recorder.now() >= deadline - asked["left"]:
            lost, value = True, {"lock": asked["lock"], "hold": hold}
            why = ["lost", "its holder goes by the end of its lease"]
            self._recorder.op(self.process, "info", "lost", value, why, self.node)
        return {**asked, "lost": lost, "deadline": deadline}

    def is_lost(self, hold: str) -> bool:
        with self._changed:
            return self._hold.is_lost(hold)

    def leave(self) -> None:
        """Let the process of an elector end, and its successor begin."""
        self._send({"control": "leave"})

    def arm(self, point: str, then: str = "") -> None:
        with self._changed:
            self.at_point = None
        self._send({"control": "arm", "point": point} | ({"then": then} if then else {}))

    def disarm(self, point: str) -> None:
        self._send({"control": "disarm", "point": point})

    def wait_failpoint(self, point: str, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.at_point == point, timeout_s)

    def leave_failpoint(self) -> None:
        """Prepare for its resumption: reports of a failpoint from now on are new."""
        with self._changed:
            self.at_point = None

    def wait_cancelled(self, before: int, timeout_s: float) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self.cancelled > before or self.gone, timeout_s)
            return self.cancelled > before

    @property
    def busy(self) -> bool:
        """Return whether it is in an op."""
        return self._doing.op is not None

    def mark_clock(self, clock: str) -> dict[str, Any]:
        return {}

    def look_at_clock(self, clock: str, mark: dict[str, Any]) -> tuple[float, float]:
        """Return bounds of the offset of the wall clock that the program itself sees, in seconds.

        Both sides give the wall clock relative to the monotonic clock, so the answer's delay does
        not matter. Raise Crashed if the program does not answer in time.
        """
        self._answers.forget(Clock)
        self._send({"control": "clock"})
        shown = self._answer(Clock, _CLOCK_S)
        mine = json.loads(self._remote.run(["fencepost-node", "clocks", "node", "wall"]).out)
        low_ns, high_ns = shown.low_ns - mine["high_ns"], shown.high_ns - mine["low_ns"]
        return low_ns / 1e9, high_ns / 1e9

    def wait_gone(self, timeout_s: float) -> None:
        self._streams.wait_over(timeout_s)

    def close(self) -> None:
        """Close its standard input; kill it if it does not end by that."""
        self._told_to_end = True
        self._streams.close(self._kill)

    def _kill(self) -> None:
        if last := self._present.latest():
            self._remote.signal(last.pid, signal.SIGKILL, last.started)
        else:
            kill_marked(self._remote, CLIENT)

    def _send(self, message: dict[str, Any]) -> None:
        self._streams.send(message)

    def _take(self, lines: Sequence[bytes | TooLong]) -> None:
        heard = self._hearing.take(lines)
        events = heard.events
        # If the history cannot be written, the recorder remembers that and the run ends. Until then
        # continue to read, so that no client blocks at a full pipe.
        with suppress(OSError):
            if events:
                self._recorder.append(heard.lines, events)
        with self._changed:
            self.broken = self.broken or self._hearing.mistake
            self.at_point = None  # a program that writes again has passed its failpoint
            self._doing.take(events, heard.lines)
            self._answered.update(one.f for one in events if one.type == "ok")
            if self._driver is not None:
                self._hold.take(events)
            self._take_answers(heard.answers)
            self._changed.notify_all()

    def answered(self, f: str) -> int:
        """Return how many of these ops were answered ok."""
        return self._answered[f]

    def _ended_by_itself(self) -> str:
        """Return the error of a user's client program that ended during a run; empty for
        fencepost's."""
        if self._generates and not self._own:
            return ""
        return f"{self._called} ended by itself: {self._end_said(0)}"

    def _take_answers(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            match answer:
                case Point(point, port):
                    self.at_point, self.connection = point, port
                case Cancelled(later):
                    self.cancelled, self.cancelled_later = self.cancelled + 1, later
                case Cut(bytes=count):
                    why = f"its pump dropped {count} bytes, because they were not read in time"
                    self._hearing.miss(why, b"", count, lost=True)
                case Stopped():
                    self._doing.declined(STOPPED)
                case Broken(why):
                    self.broken = why
                case Successor(pid):
                    self._present.succeed(pid)
                case Over(code):
                    self._heard_all, self._code = True, code
                case _:
                    if isinstance(answer, Idle):
                        self._doing.works = False
                    self._answers.add(answer)

    def fail(self, part: str, error: Exception) -> None:
        """Record an error that ended a thread which this client needs: a defect of fencepost."""
        with self._changed:
            self.broken = self.broken or (
                f"the {part} for {self._called} ended by an error of fencepost: {error!r}; "
                "please report it"
            )
            self._changed.notify_all()

    def _end(self, defect: Exception | None) -> None:
        with self._changed:
            error = ["killed", "the worker has ended; whether this happened is not known"]
            if defect is not None:
                self.fail("reader", defect)
            if defect is not None or (not self._heard_all and self._doing.unheard):
                self._recorder.aside.unheard(self.node, self._hearing.latest_ns)
            try:
                for event in self._doing.begun:
                    self._recorder.op(event.process, "info", event.f, {}, error, self.node)
            finally:
                self._doing.end()
                if not (self.broken or self._told_to_end or self._code in _KILLED):
                    self.broken = self._ended_by_itself()
                self.gone = True
                self._changed.notify_all()
