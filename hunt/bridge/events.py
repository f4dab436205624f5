"""What happened in a simulated run that has to happen again on real servers, in order.

A request is one deed, at the moment at which it is carried out: there it meets what others did.
The rest of its way is the network's, unless a fault met it there (`Hit`). A client is
paused or killed at a step of its op; all else concerns nodes or links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.checker.history.history import NEMESIS, SPONTANEOUS
from fencepost.hunt.bridge.trace import Call, Moment, Trace
from fencepost.hunt.faults.registry import SIMULATED
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.run import Run
from fencepost.hunt.sim.network import LATENCY
from fencepost.hunt.sim.record import Row
from fencepost.hunt.sim.setting import Setting
from fencepost.workloads.client.steps import Step

_OF_LOCK = ("acquire", "extend", "release")
LOST, LATE = "lost", "late"
REQUEST, REPLY, REPLICATION = "request", "reply", "replication"


@dataclass(eq=False)
class Injected:
    """A fault of the run, by its name there, and when it ended, if it did."""

    name: str
    family: str
    targets: tuple[str, ...]
    arguments: dict[str, Any]
    links: frozenset[tuple[str, str]]
    start_ns: int
    words: str


@dataclass(frozen=True)
class Hit:
    """What struck a message: its request or its reply was lost, or came late; or what it wrote was
    not sent on to a replica.

    `waits`: the client went on waiting for it. `between`: the nodes that heard nothing of one
    another.
    """

    fault: str
    which: str
    how: str
    words: str
    between: tuple[str, str]
    waits: bool = False


@dataclass(eq=False)
class Op:
    """One op of a client. `type`: how it ended; "" where it did not. `tries_again`: it slept in
    between. `sent`: each message that it sent, with its node."""

    client: str
    f: str
    type: str = ""
    tries_again: bool = False
    sent: set[tuple[Any, ...]] = field(default_factory=set)

    def said(self, step: Step) -> bool:
        """Note that it sends this; return whether it had not sent the same before."""
        new = (step.node, step.command) not in self.sent
        self.sent.add((step.node, step.command))
        return new


@dataclass(eq=False)
class Deed:
    """One thing that happened.

    `what`: `begin` and `end` of an op, `send` of a request (`call`, `hit`), `arrive` of one that
    was late; of a fault `inject` and `heal`. Of a client that it concerns, `number` is the step of
    its op before which that is; 0: it is in no op, or waits for its servers on a connection of its
    lock's own.
    """

    what: str
    time_ns: int
    place: float
    client: str = ""
    op: Op | None = None
    call: Call | None = None
    hit: Hit | None = None
    fault: Injected | None = None
    number: int = 0
    nodes: frozenset[str] = frozenset()
    links: frozenset[tuple[str, str]] = frozenset()


@dataclass
class _At:
    """Where a client is: in which op, in which call of it, how many calls it has behind it, since
    when."""

    op: Op | None = None
    call: Call | None = None
    done: int = 0
    since_ns: int = 0
    sent: dict[str, Call] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """The step that comes next, or that it is in."""
        if self.op is None:
            return 0
        return self.call.step.number if self.call is not None else self.done + 1


def long_ns(setting: Setting) -> int:
    """A part of a lease that counts: as much of one goes by on real servers."""
    return setting.ttl_ns // 8


def unseen(setting: Setting, trace: Trace) -> set[str]:
    """The clients whose lock sends requests that are no steps of an op: all of them by the model of
    the servers, or those whose lock has threads of its own."""
    if not MODELS[setting.model].steps:
        return set(setting.clients)
    return trace.aside if setting.outside else set()


def deeds(run: Run, trace: Trace, until_ns: int) -> list[Deed]:
    """All that happened until then, in order."""
    return _Reader(run, trace, until_ns).read()


class _Reader:
    """Goes through a run once."""

    def __init__(self, run: Run, trace: Trace, until_ns: int) -> None:
        self._run = run
        self._until_ns = until_ns
        # Whose lock has requests that are no steps.
        self._unseen = unseen(run.setting, trace)
        self._merged = list(_merged(run.rows, trace.moments))
        self._handled = self._places("handled")
        self._over = self._places("over")
        self._clients = {name: _At() for name in run.setting.clients}
        self._faults: dict[str, Injected] = {}
        self._ends: dict[str, int] = {}
        self._hits: dict[Call, Hit] = {}
        self._sends: dict[Call, Deed] = {}
        # In which step each request's reply was waited for: in none, where it was not sent.
        self._receipts: dict[Call, Call] = {}
        self._found: list[Deed] = []

    def _places(self, what: str) -> dict[Call, int]:
        return {
            one.call: place
            for place, one in enumerate(self._merged)
            if isinstance(one, Moment) and one.what == what
        }

    def read(self) -> list[Deed]:
        for place, one in enumerate(self._merged):
            if isinstance(one, Moment):
                self._moment(place, one)
            elif one[1] != NEMESIS:
                self._op(place, one)
            elif one[2] == "ok":
                self._fault(place, one)
        self._of_messages()
        self._in_order_of_sending()
        found = [deed for deed in self._found if deed.time_ns <= self._until_ns]
        # An op that had just begun changes nothing, unless its requests are not seen.
        going = {deed.op for deed in found if deed.what != "begin" or deed.nodes}
        found = [deed for deed in found if deed.what != "begin" or deed.op in going]
        return sorted(found, key=lambda deed: deed.place)

    def _moment(self, place: int, moment: Moment) -> None:
        call, at = moment.call, self._clients[moment.call.client]
        at.since_ns = moment.time_ns
        if moment.what == "over":
            at.call, at.done = None, call.step.number
        if moment.what != "begins":
            return
        at.call = call
        if at.op is not None and call.step.kind == "sleep":
            at.op.tries_again = True
        if call.step.kind == "receive" and (sent := at.sent.get(call.step.node)) is not None:
            self._receipts.setdefault(sent, call)
        if call.goes_out and at.op is not None:
            at.sent[call.step.node] = call
            if call.sends and self._run.setting.outside and not at.op.said(call.step):
                at.op.tries_again = True  # its sleeps are not steps
            self._sends[call] = Deed(
                "send", moment.time_ns, place, call.client, at.op, call,
                nodes=frozenset([call.step.node]),
                links=frozenset([(call.client, call.step.node)]),
            )  # fmt: skip
            self._found.append(self._sends[call])

    def _op(self, place: int, row: Row) -> None:
        time, _, type, f, _, error, node, _ = row
        if f in SPONTANEOUS or f == "close" or time > self._run.healed_ns:
            return
        client = str(node)
        at = self._clients[client]
        # Nobody has seen which servers an op met on connections of its own: it may be any.
        lock = f in _OF_LOCK and client in self._unseen
        nodes = frozenset(self._run.setting.servers) if lock else frozenset[str]()
        if type == "invoke":
            at.op, at.call, at.done, at.since_ns = Op(client, f), None, 0, time
            self._found.append(Deed("begin", time, place, client, at.op, nodes=nodes))
        elif at.op is not None:
            op, at.op = at.op, None
            if error is None or error.kind != "killed":
                op.type = type
                self._found.append(Deed("end", time, place, client, op, nodes=nodes))

    def _fault(self, place: int, row: Row) -> None:
        time, family, value = row[0], row[3], row[4]
        name, targets = value["fault"], tuple(value["targets"])
        if value["phase"] == "end":
            fault = self._faults[name]
            self._ends[name] = time
            if not SIMULATED[family].messages and time < self._run.healed_ns:
                client = _client_of(fault, self._clients)
                found = Deed("heal", time, place, client, fault=fault)
                found.nodes, found.links = _where(fault, self._clients)
                self._found.append(found)
            return
        arguments = {k: v for k, v in value["arguments"].items() if k != "words"}
        links = frozenset((a, b) for a, b in arguments.get("links", ()))
        words = value["arguments"]["words"]
        fault = Injected(name, family, targets, arguments, links, time, words)
        self._faults[name] = fault
        if SIMULATED[family].messages:
            self._message(place, fault)
            return
        if SIMULATED[family].unreplicated_lost:
            self._unreplicated(fault)
        begins = self._cut_in_flight(place, fault) if links else place
        client = _client_of(fault, self._clients)
        found = Deed("inject", time, begins, client, fault=fault)
        found.nodes, found.links = _where(fault, self._clients)
        if client:
            at = self._clients[client]
            let_wait = client in self._unseen and self._is_let_wait(at, time)
            found.op, found.number = at.op, 0 if let_wait else at.number
            found.place = self._after_its_request(place, client)
        self._found.append(found)

    def _is_let_wait(self, at: _At, now_ns: int) -> bool:
        """Whether its servers let a client wait, for so long that real ones do as well. No step
        of its op comes before they answer, so it could not be stopped there."""
        waits = at.op is not None and at.op.f in _OF_LOCK and at.call is None
        return waits and now_ns - at.since_ns >= long_ns(self._run.setting)

    def _after_its_request(self, place: int, client: str) -> float:
        """Who has a request on the way is struck once that was carried out."""
        sent = self._clients[client].sent.values()
        going = [self._handled[call] for call in sent if call in self._handled]
        return max([place, *(handled + 0.5 for handled in going if handled > place)])

    def _message(self, place: int, fault: Injected) -> None:
        """A message was lost or held back."""
        unplayed = Deed("inject", fault.start_ns, place, fault=fault)
        if fault.arguments.get("kind") == "duplicate":
            self._found.append(unplayed)
            return
        source, to = fault.arguments["source"], fault.arguments["to"]
        request = source in self._clients
        client, server = (source, to) if request else (to, source)
        call = self._clients[client].sent.get(server)
        if call is None:
            self._found.append(unplayed)
        else:
            how = LATE if fault.family == "delay" else LOST
            which = REQUEST if request else REPLY
            before = self._hits.get(call)
            words = fault.words if before is None else f"{before.words}, and then {fault.words}"
            self._hits[call] = Hit(fault.name, which, how, words, (client, server))

    def _cut_in_flight(self, place: int, fault: Injected) -> float:
        """A cut leaves alone the requests that are on their way: it comes after them. Where it cuts
        off a reply, that alone is lost before."""
        begins = float(place)
        for client, server in fault.links:
            at = self._clients.get(client)
            call = None if at is None else at.sent.get(server)
            if call is None or not self._over.get(call, place) <= place <= self._handled.get(
                call, -1
            ):
                continue
            begins = max(begins, self._handled[call] + 0.5)
            if call.lost and call not in self._hits:
                words = f"the reply of {server} to {client} is lost"
                self._hits[call] = Hit(f"{fault.name}-reply", REPLY, LOST, words, (client, server))
        return begins

    def _unreplicated(self, fault: Injected) -> None:
        """What the primary had carried out last and not sent on yet, its replica never hears of."""
        old, new = fault.targets
        last: Call | None = None
        for call, deed in self._sends.items():
            handled = call.handled_ns
            if old in deed.nodes and handled is not None and handled <= fault.start_ns:
                last = call
        if last is not None and fault.start_ns - (last.handled_ns or 0) <= LATENCY:
            words = f"what {old} had carried out last is not sent on to {new}"
            self._hits[last] = Hit(f"{fault.name}-cut", REPLICATION, LOST, words, (old, new))

    def _of_messages(self) -> None:
        """Put requests where they were carried out, and those that were late where they came."""
        for call, deed in self._sends.items():
            hit, handled = self._hits.get(call), self._handled.get(call)
            # What struck in the middle of sending came before it had any effect.
            deed.place = self._over.get(call, deed.place)
            receipt = self._receipts.get(call)
            if hit is None:
                if handled is not None:
                    deed.place, deed.time_ns = handled, call.handled_ns or deed.time_ns
                elif not call.lost and receipt is not None and receipt in self._over:
                    # Its server was gone: it met that, and not what was before.
                    deed.place, deed.time_ns = self._over[receipt] - 0.5, receipt.over_ns or 0
                continue
            late = self._late(call, hit, handled, receipt)
            waits = (
                late is not None and receipt is not None and self._over.get(receipt, late) >= late
            )
            deed.hit = replace(hit, waits=waits)
            if hit.which != REQUEST and handled is not None:
                deed.place, deed.time_ns = handled, call.handled_ns or deed.time_ns
            if late is not None:
                moment = self._merged[late]
                time = moment.time_ns if isinstance(moment, Moment) else moment[0]
                arrives = Deed("arrive", time, late - 0.5, call.client, deed.op, call, deed.hit)
                arrives.nodes, arrives.links = deed.nodes, deed.links
                self._found.append(arrives)

    def _in_order_of_sending(self) -> None:
        """A request that met a cut is where it was sent. One that was sent before it, and arrived,
        may be later than that: it comes after this, unless the cut is over by then."""
        behind: dict[Op | None, float] = {}
        for call, deed in self._sends.items():  # in order of sending
            last = behind.get(deed.op, deed.place)
            if call.lost and deed.hit is None and deed.place < last:
                over = (
                    one.place
                    for one in self._found
                    if one.what == "heal" and one.links & deed.links and one.place > deed.place
                )
                if min(over, default=last + 1) > last:
                    deed.place = last + 0.25
            if call in self._handled:
                behind[deed.op] = max(last, deed.place)

    def _late(self, call: Call, hit: Hit, handled: int | None, receipt: Call | None) -> int | None:
        """Where a message that was held back came."""
        if hit.how == LOST:
            return None
        if hit.which == REQUEST:
            return handled
        end, over = self._ends.get(hit.fault), None if receipt is None else receipt.over_ns
        if receipt is None or end is None or over is None or over < end:
            return None  # nobody waited for it any more
        return self._over[receipt]


def _merged(rows: Sequence[Row], moments: Sequence[Moment]) -> Iterator[Row | Moment]:
    """Rows and moments in the order in which they came."""
    left = iter(moments)
    moment = next(left, None)
    for place, row in enumerate(rows):
        while moment is not None and moment.rows <= place:
            yield moment
            moment = next(left, None)
        yield row
    while moment is not None:
        yield moment
        moment = next(left, None)


def _client_of(fault: Injected, clients: dict[str, _At]) -> str:
    """The client that a pause or a kill concerns; "" where that is a server."""
    target = fault.targets[0]
    return target if not fault.links and target in clients else ""


def _where(
    fault: Injected, clients: dict[str, _At]
) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """The nodes and the links that a fault concerns: a cut between a client and servers has no
    node as such."""
    apart = bool(fault.links) and all(near in clients for near, _ in fault.links)
    return (frozenset() if apart else frozenset(fault.targets)), fault.links
