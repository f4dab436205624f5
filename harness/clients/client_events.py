"""Filters client output: which lines enter the history, and which are rejected.

By the history's rules an event must be valid by itself (event.py), and fit the earlier ones: it is
of this client, it is later than the client's last event, and it completes an open op, or begins one
while none is open. A line that breaks these rules is rejected. If it was a completion, the outcome
of its op is unknown, so the op is completed as unknown before the client's next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from fencepost.checker.history.history import SPONTANEOUS
from fencepost.harness.clients import answer
from fencepost.harness.clients.answer import Answer, Ready
from fencepost.harness.clients.event import Event, decode, must_tell
from fencepost.harness.clients.rejected import RejectedLines
from fencepost.harness.lines import TooLong

# The limit on a client's clock ahead of the harness': far more than clocks of two hosts ever
# differ.
_AHEAD_NS = 60 * 10**9
_CONTROL = b'{"control"'
_SHOWN = 300
# The number of processes per client whose last event is remembered. One of them is alive.
_PROCESSES = 100


@dataclass
class Heard:
    """Events, each with its line, and answers."""

    lines: list[bytes] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)


class ClientEvents:
    """The output of one client, from its start to its end.

    The numbers of its processes are `first` and then every `stride` further on. `now` gives the
    time since the test's start, in ns.

    `mistake` is the first line that the client's author has to change, with the reason: a line
    before `ready` that is no answer; or, of a program in another language, a whole JSON object that
    is no event. Other rejected lines were printed by a library, or are torn.
    """

    def __init__(
        self, node: str, first: int, stride: int, now: Callable[[], int], aside: RejectedLines
    ) -> None:
        self._node = node
        self._first = first
        self._stride = stride
        self._now = now
        self._aside = aside
        self._open: dict[int, Event] = {}
        self._latest: dict[int, int] = {}
        self._ready: Ready | None = None
        self.mistake = ""

    def take(self, lines: Iterable[bytes | TooLong]) -> Heard:
        """Take the next lines of the client; return its events and answers."""
        heard = Heard()
        until = self._now() + _AHEAD_NS
        for line in lines:
            if isinstance(line, TooLong):
                why = f"it is {line.length} bytes long"
                self.miss(why, line.start, line.length, lost=True)
                continue
            try:
                if line.startswith(_CONTROL):
                    answered = answer.decode(line)
                    if isinstance(answered, Ready):
                        self._ready = answered
                    heard.answers.append(answered)
                else:
                    self._take(line.strip(), until, heard)
            except (ValueError, RecursionError) as error:
                # A line without a brace is no part of an event: for example a printed warning.
                lost = b"{" in line
                self.miss(str(error), line, len(line), lost)
                self._mistake(str(error), line)
        return heard

    def _mistake(self, why: str, line: bytes) -> None:
        if self.mistake or (self._ready and (self._ready.generates or not _is_object(line))):
            return
        shown = line[:_SHOWN].decode(errors="backslashreplace")
        if not self._ready:
            begun, section = " before it was ready", "setup, and `ready`"
            why += "; write everything but answers and events to standard error"
        else:
            begun, section = "", "Orders" if line.startswith(_CONTROL) else "Ops, and their events"
        self.mistake = (
            f"{self._node} wrote{begun} {shown!r}: {why}. The correct form is in "
            f'docs/protocol.md, "{section}"'
        )

    @property
    def latest_ns(self) -> int:
        """The time of the client's last accepted event; 0 before the first."""
        return max(self._latest.values(), default=0)

    def miss(self, why: str, line: bytes, length: int, lost: bool) -> None:
        """Reject a line, or the rest of one."""
        self._aside.add(self._node, why, line, length, lost, self.latest_ns)

    def _take(self, line: bytes, until: int, heard: Heard) -> None:
        if not line:
            raise ValueError("it is empty")
        event = decode(line)
        if self._ready and not self._ready.generates:
            must_tell(event, line)
        self._must_be_its_own(event, until)
        if event.f not in SPONTANEOUS:
            self._must_fit(event)
            self._remember(event)
            missing = self._open.pop(event.process, None)
            if event.type == "invoke":
                if missing is not None:
                    self._complete(missing, event.time, heard)
                self._open[event.process] = event
        heard.lines.append(line)
        heard.events.append(event)

    def _must_be_its_own(self, event: Event, until: int) -> None:
        after, out_of_step = divmod(event.process - self._first, self._stride)
        if out_of_step or after < 0:
            raise ValueError(f"process {event.process} is another client's")
        if event.time > until:
            raise ValueError(f"its time, {event.time} ns, is in the future")

    def _must_fit(self, event: Event) -> None:
        begun = self._open.get(event.process)
        if event.time < self._latest.get(event.process, event.time):
            raise ValueError(f"its time, {event.time} ns, is before that of its last event")
        if event.type != "invoke" and (begun is None or begun.f != event.f):
            raise ValueError(f"it completes {event.f}, which process {event.process} has not begun")

    def _remember(self, event: Event) -> None:
        """Remember the time of a process' last event, and forget processes that ended long ago.

        A process may write an event after its successor has begun: the completion of its own close.
        """
        self._latest[event.process] = event.time
        if len(self._latest) > _PROCESSES:
            for process in sorted(self._latest)[: -_PROCESSES // 2]:
                del self._latest[process]
                self._open.pop(process, None)

    def _complete(self, begun: Event, time: int, heard: Heard) -> None:
        """Complete an op whose own completion was rejected."""
        end = Event(
            time=time,
            process=begun.process,
            # A read changes nothing, so its process continues.
            type="fail" if begun.f == "read" else "info",
            f=begun.f,
            error=["unreadable", "the client's own completion could not be read"],
            node=self._node,
        )
        heard.lines.append(msgspec.json.encode(end))
        heard.events.append(end)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except (ValueError, RecursionError):
        return False
