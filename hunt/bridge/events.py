"""Extracts the events of a simulated run: what must be reproduced on real servers, in order.

A request is one event, at the time of its execution, where it meets the effects of others. The rest
of its way is left to the network, unless a fault met it there (`Hit`). A client is paused or killed
at a step of its op; all other faults concern nodes or links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from fencepost.checker.history.history import NEMESIS, SPONTANEOUS
from fencepost.hunt.bridge.records import (
    LATE,
    LOST,
    REPLICATION,
    REPLY,
    REQUEST,
    Event,
    Hit,
    Injected,
    Op,
)
from fencepost.hunt.bridge.trace import Call, Moment, Traced
from fencepost.hunt.faults.registry import SIMULATED
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.run import Run
from fencepost.hunt.sim.network import LATENCY
from fencepost.hunt.sim.record import Row
from fencepost.hunt.sim.setting import Setting

_OF_LOCK = ("acquire", "extend", "release")


@dataclass
class _At:
    """The position of a client: its op, its call, the number of its calls so far, and since
    when."""

    op: Op | None = None
    call: Call | None = None
    done: int = 0
    since_ns: int = 0
    sent: dict[str, Call] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """The number of the current step, or else of the next one."""
        if self.op is None:
            return 0
        return self.call.step.number if self.call is not None else self.done + 1


def long_ns(setting: Setting) -> int:
    """Return the part of a lease that counts: real servers use as much of one."""
    return setting.ttl_ns // 8


def unseen(setting: Setting, trace: Traced) -> set[str]:
    """Return the clients whose lock sends requests that are no steps of an op.

    These are all clients, depending on the model of the servers, or those whose lock has threads.
    """
    if not MODELS[setting.model].steps:
        return set(setting.clients)
    return trace.aside if setting.outside or setting.live else set()


def events(run: Run, trace: Traced, until_ns: int) -> list[Event]:
    """Return all events until this time, in order."""
    return _Reader(run, trace, until_ns).read()


class _Reader:
    """Reads a run once."""

    def __init__(self, run: Run, trace: Traced, until_ns: int) -> None:
        self._run = run
        self._until_ns = until_ns
        # Clients whose lock sends requests that are no steps.
        self._unseen = unseen(run.setting, trace)
        self._merged = list(_merged(trace.rows, trace.moments))
        self._met = trace.met
        self._handled = self._places("handled")
        self._over = self._places("over")
        self._clients = {name: _At() for name in run.setting.clients}
        self._faults: dict[str, Injected] = {}
        self._ends: dict[str, int] = {}
        self._hits: dict[Call, Hit] = {}
        self._sends: dict[Call, Event] = {}
        # The step that waited for each request's reply; none for a request without its own step.
        self._receipts: dict[Call, Call] = {}
        self._found: list[Event] = []

    def _places(self, what: str) -> dict[Call, int]:
        return {
            one.call: place
            for place, one in enumerate(self._merged)
            if isinstance(one, Moment) and one.what == what
        }

    def read(self) -> list[Event]:
        for place, one in enumerate(self._merged):
            if isinstance(one, Moment):
                self._moment(place, one)
            elif one[1] != NEMESIS:
                self._op(place, one)
            elif one[2] == "ok":
                self._fault(place, one)
        self._of_messages()
        self._in_order_of_sending()
        found = [event for event in self._found if event.time_ns <= self._until_ns]
        # An op that had just begun changes nothing, unless its requests are unseen.
        going = {event.op for event in found if event.what != "begin" or event.nodes}
        found = [event for event in found if event.what != "begin" or event.op in going]
        return sorted(found, key=lambda event: event.place)

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
            setting = self._run.setting
            counted = setting.outside or setting.live
            if call.sends and counted and not at.op.note_sent(call.step):
                at.op.tries_again = True  # its sleeps are not steps
            self._sends[call] = Event(
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
        # The trace does not show which servers an op reached on its lock's connections: possibly
        # any.
        lock = f in _OF_LOCK and client in self._unseen
        nodes = frozenset(self._run.setting.servers) if lock else frozenset[str]()
        if type == "invoke":
            at.op, at.call, at.done, at.since_ns = Op(client, f), None, 0, time
            self._found.append(Event("begin", time, place, client, at.op, nodes=nodes))
        elif at.op is not None:
            op, at.op = at.op, None
            if error is None or error.kind != "killed":
                op.type = type
                self._found.append(Event("end", time, place, client, op, nodes=nodes))

    def _fault(self, place: int, row: Row) -> None:
        time, family, value = row[0], row[3], row[4]
        name, targets = value["fault"], tuple(value["targets"])
        if value["phase"] == "end":
            fault = self._faults[name]
            self._ends[name] = time
            if not SIMULATED[family].messages and time < self._run.healed_ns:
                client = _client_of(fault, self._clients)
                found = Event("heal", time, place, client, fault=fault)
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
        found = Event("inject", time, begins, client, fault=fault)
        found.nodes, found.links = _where(fault, self._clients)
        if client:
            at = self._clients[client]
            let_wait = client in self._unseen and self._is_let_wait(at, time)
            met = self._met.get(name)
            number = met.number if met is not None else at.number
            found.op, found.number = at.op, 0 if let_wait or at.op is None else number
            found.place = self._after_its_request(place, client)
        self._found.append(found)

    def _is_let_wait(self, at: _At, now_ns: int) -> bool:
        """Return whether its servers keep a client waiting, so long that real ones do as well.

        No step of its op comes before their answer, so the client cannot be stopped there.
        """
        waits = at.op is not None and at.op.f in _OF_LOCK and at.call is None
        return waits and now_ns - at.since_ns >= long_ns(self._run.setting)

    def _after_its_request(self, place: int, client: str) -> float:
        """Return the place of a fault on a client: after its request under way is executed."""
        sent = self._clients[client].sent.values()
        going = [self._handled[call] for call in sent if call in self._handled]
        return max([place, *(handled + 0.5 for handled in going if handled > place)])

    def _message(self, place: int, fault: Injected) -> None:
        """Note that a message was lost or delayed."""
        unplayed = Event("inject", fault.start_ns, place, fault=fault)
        if fault.arguments.get("kind") == "duplicate":
            self._found.append(unplayed)
            return
        source, to = fault.arguments["source"], fault.arguments["to"]
        request = source in self._clients
        client, server = (source, to) if request else (to, source)
        met = self._met.get(fault.name)
        call = self._clients[client].sent.get(server) if met is None else met.call
        if call is None:
            self._found.append(unplayed)
        else:
            how = LATE if SIMULATED[fault.family].late else LOST
            which = REQUEST if request else REPLY
            before = self._hits.get(call)
            words = fault.words if before is None else f"{before.words}, and then {fault.words}"
            self._hits[call] = Hit(fault.name, which, how, words, (client, server))

    def _cut_in_flight(self, place: int, fault: Injected) -> float:
        """Return the place of a cut: after the requests that are under way, which it does not
        affect.

        If it cuts off a reply, only that reply is lost, before the cut.
        """
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
        """Mark the last writes of the primary as not replicated."""
        old, new = fault.targets
        last: Call | None = None
        for call, event in self._sends.items():
            handled = call.handled_ns
            if old in event.nodes and handled is not None and handled <= fault.start_ns:
                last = call
        if last is not None and fault.start_ns - (last.handled_ns or 0) <= LATENCY:
            words = f"the last write of {old} is not replicated to {new}"
            self._hits[last] = Hit(f"{fault.name}-cut", REPLICATION, LOST, words, (old, new))

    def _of_messages(self) -> None:
        """Place requests where they were executed, and late messages where they arrived."""
        for call, event in self._sends.items():
            hit, handled = self._hits.get(call), self._handled.get(call)
            # A fault in the middle of sending came before the message had an effect.
            event.place = self._over.get(call, event.place)
            receipt = self._receipts.get(call)
            if hit is None:
                if handled is not None:
                    event.place, event.time_ns = handled, call.handled_ns or event.time_ns
                elif not call.lost and receipt is not None and receipt in self._over:
                    # Its server was down, so it met the fault and no earlier state.
                    event.place, event.time_ns = self._over[receipt] - 0.5, receipt.over_ns or 0
                continue
            late = self._late(call, hit, handled, receipt)
            waits = (
                late is not None and receipt is not None and self._over.get(receipt, late) >= late
            )
            event.hit = replace(hit, waits=waits)
            if hit.which != REQUEST and handled is not None:
                event.place, event.time_ns = handled, call.handled_ns or event.time_ns
            if late is not None:
                moment = self._merged[late]
                time = moment.time_ns if isinstance(moment, Moment) else moment[0]
                arrives = Event("arrive", time, late - 0.5, call.client, event.op, call, event.hit)
                arrives.nodes, arrives.links = event.nodes, event.links
                self._found.append(arrives)

    def _in_order_of_sending(self) -> None:
        """Keep requests in the order of sending.

        A request that met a cut is placed where it was sent. An earlier request that arrived may
        have been executed after that; then the lost one follows it, unless the cut has ended by
        then.
        """
        behind: dict[Op | None, float] = {}
        for call, event in self._sends.items():  # in order of sending
            last = behind.get(event.op, event.place)
            if call.lost and event.hit is None and event.place < last:
                over = (
                    one.place
                    for one in self._found
                    if one.what == "heal" and one.links & event.links and one.place > event.place
                )
                if min(over, default=last + 1) > last:
                    event.place = last + 0.25
            if call in self._handled:
                behind[event.op] = max(last, event.place)

    def _late(self, call: Call, hit: Hit, handled: int | None, receipt: Call | None) -> int | None:
        """Return where a delayed message arrived."""
        if hit.how == LOST:
            return None
        if hit.which == REQUEST:
            return handled
        end, over = self._ends.get(hit.fault), None if receipt is None else receipt.over_ns
        if receipt is None or end is None or over is None or over < end:
            return None  # no client waited for it any longer
        return self._over[receipt]


def _merged(rows: Sequence[Row], moments: Sequence[Moment]) -> Iterator[Row | Moment]:
    """Yield rows and moments in the order of their occurrence."""
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
    """Return the client that a pause or kill concerns; "" if it is a server."""
    target = fault.targets[0]
    return target if not fault.links and target in clients else ""


def _where(
    fault: Injected, clients: dict[str, _At]
) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """Return the nodes and links that a fault concerns; for a cut between clients and servers only
    links."""
    apart = bool(fault.links) and all(near in clients for near, _ in fault.links)
    return (frozenset() if apart else frozenset(fault.targets)), fault.links
