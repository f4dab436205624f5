"""Records the messages of a counterexample, for its drawing (report/figures/sequence.py).

The run is replayed again with a decision at every step, so that every message is an event of
its own (hunt/sim/link.py); the replay has the same ops as the run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from fencepost.checker.history.history import NEMESIS
from fencepost.hunt.faults.registry import table
from fencepost.hunt.faults.simulated import seconds
from fencepost.hunt.intercept.stream import Stream, Talk
from fencepost.hunt.lock_error import LockError
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.models.words import shortened
from fencepost.hunt.run import Run
from fencepost.hunt.sim.network import Request, Wire
from fencepost.hunt.sim.record import Row
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import STORAGE, Setting
from fencepost.hunt.sim.world import Event, Node, World

MOST = 1000
"""The largest number of messages that is kept: the last ones."""


@dataclass(frozen=True)
class Message:
    """A message from one node to another, sent and arrived at these times (ns).

    `fate`: "" if it arrived as usual; `late`: held back; `lost`: it arrived nowhere; `dead`: its
    server was down, or had restarted; `again`: it arrived a second time; `unread`: its client had
    given up waiting; `refused`: the connection could not be opened. `arrived_ns` is then the time
    at which that was known, or None. `call`: the number of the exchange that a request and its
    reply share. `f`: the op of the client, `op_ns`: when it was invoked. `denied`: the reply grants
    nothing.
    """

    source: str
    to: str
    sent_ns: int
    arrived_ns: int | None
    words: str
    fate: str
    call: int
    reply: bool = False
    f: str = ""
    op_ns: int = 0
    denied: bool = False


def messages(run: Run, schedule: Schedule) -> list[Message]:
    """Replay the schedule of a run, and return its messages in the order in which they were sent.

    Return none if the replay has other ops than the run: a drawing of it would mislead. Return none
    of connections on which servers send unasked (hunt/intercept/duplex.py), because a reply there
    belongs to no request.
    """
    if any(server.duplex for server in run.servers):
        return []
    again = _Recording(run.setting, schedule)
    try:
        again.execute()
    except LockError:
        return []
    if again.unasked:
        return []
    same = [row[:4] for row in again.rows] == [row[:4] for row in run.rows]
    return again.found() if same else []


def to_json(found: Sequence[Message]) -> dict[str, Any]:
    """Return the content of messages.json: the last messages, without fields that are empty."""
    rows = [{name: value for name, value in asdict(one).items() if value} for one in found[-MOST:]]
    return {"messages": rows, "left_out": len(found[:-MOST])}


@dataclass
class _Sight:
    """A message that was about to arrive. `at_ns`: when it arrived, or when a fault stopped it."""

    event: Request
    back: bool
    at_ns: int
    arrives: bool
    fate: str = ""
    reply: Any = None


@dataclass
class _Exchange:
    """A request with its reply. `lost`: those that met a cut, and when."""

    number: int
    link: Wire
    command: tuple[Any, ...]
    sent_ns: int
    sights: list[_Sight] = field(default_factory=list)
    executed_ns: int | None = None
    lost: list[tuple[bool, int]] = field(default_factory=list)
    under_way: bool = False

    def of(self, command: tuple[Any, ...]) -> bool:
        return command is self.command or any(command is one for one in self.command)


class _Recording(Run):
    """A run that notes each message."""

    def __init__(self, setting: Setting, schedule: Schedule) -> None:
        self.notes = Recorder(setting)
        super().__init__(setting, schedule, table(setting), self.notes)
        # Whether a server could send on a connection without a request.
        self.unasked = False

    def found(self) -> list[Message]:
        return self.notes.found(self.rows)

    def _next(self) -> int:
        return min(self.world.step + 1, super()._next())

    def decide(self, event: Event | None) -> int:
        due = super().decide(event)
        if isinstance(event, Request):
            self.notes.sees(event, self.world.now)
        elif event is None and self.world.running is not None:
            self.notes.steps(self.world.running.node, self.world.now)
        return min(due, self.world.step + 1)

    def _forget(self) -> None:
        self.unasked = bool(self.network.duplexes)
        self.notes.ends(self.world)
        super()._forget()


class Recorder:
    """Notes the messages of a run. It observes the network (network.Tap), and sees each message
    before it arrives."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._rows: Sequence[Row] = ()
        # By the identity of the command, which is kept, so that no other gets its id.
        self._exchanges: dict[int, _Exchange] = {}
        self._latest: dict[int, list[_Exchange]] = {}
        # When each node last took a step by itself: a connection begins with one.
        self._stepped: dict[str, int] = {}
        self._unopened: list[tuple[Wire, int, int]] = []

    def found(self, rows: Sequence[Row]) -> list[Message]:
        """Return the messages of the run, which has ended, in the order in which they were sent."""
        self._rows = rows
        ops = _Ops(rows)
        made = [message for one in self._exchanges.values() for message in self._told(one, ops)]
        for link, begun, ended in self._unopened:
            f, op_ns, _ = ops.at(link.client.name, begun)
            ends, words = (link.client.name, link.server.name), _attempt(ended - begun)
            made.append(
                Message(*ends, begun, ended, words, "refused", -1 - len(made), False, f, op_ns)
            )
        return sorted(made, key=lambda one: (one.sent_ns, one.call, one.reply))

    def steps(self, node: Node, now: int) -> None:
        """Note that a node takes a step by itself."""
        self._stepped[node.name] = now

    def ends(self, world: World) -> None:
        """Note which messages are under way at the end of the run."""
        queued = [event for _, _, event in world.queue if isinstance(event, Request)]
        for event in queued:
            if not event.off and id(event.command) in self._exchanges:
                self._exchanges[id(event.command)].under_way = True

    def sees(self, event: Request, now: int) -> None:
        """Note that a message is about to arrive, if `event.off` does not say that it is lost."""
        exchange = self._exchange(event.link, event.command, event.sent)
        at, fate = now, ""
        if event.back:
            # The message to a paused client arrives before the client reads it.
            at = min(at, event.arrives)
            fate = "" if getattr(event.link, "request", event) is event else "unread"
        elif not event.server.up or event.server.boots != event.boot:
            fate = "dead"
        sight = _Sight(event, event.back, at, not event.off, fate, _reply(event))
        # A message that meets a pause arrives a second time, after it.
        seen = [one for one in exchange.sights if (one.event, one.back) != (event, event.back)]
        exchange.sights = [*seen, sight]

    def _exchange(self, link: Wire, command: tuple[Any, ...], sent_ns: int) -> _Exchange:
        found = self._exchanges.get(id(command))
        if found is None:
            mine = self._latest.setdefault(id(link), [])
            found = next((one for one in reversed(mine) if one.of(command)), None)
        if found is None:
            found = _Exchange(len(self._exchanges), link, command, sent_ns)
            self._exchanges[id(command)] = found
            mine.append(found)
        return found

    # Called by the network.

    def handled(self, link: Wire, command: tuple[Any, ...], reply: Any) -> None:
        now = link.network.world.now
        self._exchange(link, command, now).executed_ns = now

    def lost(self, link: Wire, command: tuple[Any, ...]) -> None:
        now = link.network.world.now
        exchange = self._exchange(link, command, now)
        exchange.lost.append((exchange.executed_ns == now, now))

    def refused(self, link: Wire) -> None:
        now = link.network.world.now
        self._unopened.append((link, self._stepped.get(link.client.name, now), now))

    # In words.

    def _told(self, exchange: _Exchange, ops: _Ops) -> Iterator[Message]:
        link, command = exchange.link, exchange.command
        asked = self._asked(link, command)
        if not asked:
            return
        client, server = link.client.name, link.server.name
        f, op_ns, place = ops.at(client, exchange.sent_ns)
        about_data = server == STORAGE and f in ("read", "write")
        if about_data:
            asked = _access(f, self._rows[place][4])
        for back in (False, True):
            sent = (exchange.executed_ns or exchange.sent_ns) if back else exchange.sent_ns
            ends = (server, client) if back else (client, server)
            for at, fate, reply in _fates(exchange, back):
                words, denied = asked, False
                if back:
                    words = self._answered(command, reply)
                    denied = _denies(reply, words)
                    if about_data and fate != "lost":
                        words = ops.outcome(place) or words
                yield Message(*ends, sent, at, words, fate, exchange.number, back, f, op_ns, denied)

    def _asked(self, link: Wire, command: tuple[Any, ...]) -> str:
        """Return the request of a message in words; "" if it concerns the connection alone."""
        asked = MODELS[self._setting.model].asked
        if command and isinstance(command[0], tuple):
            about = cast(Stream, link).session.is_about_data
            return shortened("; ".join(asked(one) for one in command if about(one)))
        return asked(command)

    def _answered(self, command: tuple[Any, ...], reply: Any) -> str:
        if isinstance(reply, _Lost):
            return "reply"
        if command and isinstance(command[0], tuple):
            command = command[-1]
        return MODELS[self._setting.model].answered(command, reply)


class _Lost:
    """Stands for a reply that never went out."""


def _attempt(took_ns: int) -> str:
    """Describe an attempt to connect that failed after a time."""
    return f"connect, no answer in {seconds(took_ns)}" if took_ns else "connect, refused"


def _reply(event: Request) -> Any:
    if isinstance(event, Talk):
        return event.replies[-1] if event.back and event.replies else None
    return event.reply


def _fates(exchange: _Exchange, back: bool) -> Iterator[tuple[int | None, str, Any]]:
    """Yield when each copy of a message arrived, its fate, and the reply."""
    sights = [one for one in exchange.sights if one.back == back]
    arrived = [one for one in sights if one.arrives]
    for number, one in enumerate(arrived):
        late = not number and any(not other.arrives for other in sights)
        yield one.at_ns, one.fate or ("again" if number else "late" if late else ""), one.reply
    if sights and not arrived:
        # A fault has stopped it: it is lost, or still held back when the run ends.
        yield None, "late" if exchange.under_way else "lost", sights[-1].reply
    for lost, _ in exchange.lost:
        if lost == back:
            yield None, "lost", _Lost()


def _denies(reply: Any, words: str) -> bool:
    if isinstance(reply, list | tuple) and reply and isinstance(reply[0], int):
        reply = reply[0] if reply[0] < 2 else words
    return not reply or words.startswith(("error", "not "))


def _access(f: str, value: dict[str, Any]) -> str:
    """Describe a read or a write of the resource."""
    if f == "read":
        return "read"
    token = value.get("token")
    with_token = "no token" if token is None else f"token {shortened(str(token), 8)}"
    return f"write on version {value.get('version')}, {with_token}"


class _Ops:
    """The ops of each client of a run, by time."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._begun: dict[str, list[tuple[int, int]]] = {}
        for place, row in enumerate(rows):
            if row[1] != NEMESIS and row[2] == "invoke":
                self._begun.setdefault(str(row[6]), []).append((row[0], place))

    def at(self, client: str, time_ns: int) -> tuple[str, int, int]:
        """Return the client's latest op at a time: its name, when it began, and its row."""
        mine = self._begun.get(client, [])
        found = bisect_right(mine, (time_ns, len(self._rows))) - 1
        if found < 0:
            return "", 0, -1
        begun, place = mine[found]
        return self._rows[place][3], begun, place

    def outcome(self, place: int) -> str:
        """Return how a read or a write ended, as the resource answered; "" if that is unknown."""
        begun = self._rows[place]
        for row in self._rows[place + 1 :]:
            if row[1] == begun[1] and row[3] == begun[3]:
                version = row[4].get("stored", row[4].get("version"))
                return {"ok": f"version {version}", "fail": "refused"}.get(row[2], "")
        return ""
