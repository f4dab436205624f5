"""Orders the events of a simulated run so that real clients can reproduce them.

In the simulation the messages of several clients overlap all the time. A real client has to be
stopped wherever it waits for another one, which takes time that its lease does not have. So events
are reordered if that changes nothing: events that meet at a server, a link or a client keep their
order; an event that ends before an op begins stays before it; and if a good part of a lease passed
between two events in the simulation, they keep their order. A client that waits longer than that
asks after the client that is granted the lock meanwhile, so that real clients do not race.

A loss of power has to come before a real server syncs, and may overtake denied requests: a server
that is down does not grant them either.
"""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.hunt.bridge.records import Event
from fencepost.hunt.faults.registry import SIMULATED


def segments(found: Sequence[Event], gap_ns: int) -> list[list[Event]]:
    """Split the events where nothing happened for this time."""
    made: list[list[Event]] = []
    for event in found:
        if not made or event.time_ns - made[-1][-1].time_ns >= gap_ns:
            made.append([])
        made[-1].append(event)
    return made


def reorder(segment: Sequence[Event], gap_ns: int) -> list[Event]:
    """Return the same events, with as few switches between clients as possible. Events with this
    time between them keep their order: a client that asks again and again leaves no gap."""
    begun = {event.op for event in segment if event.what == "begin"}
    let_wait = begun - {event.op for event in segment if event.what == "end"}
    waits = {
        event: {
            other
            for other in segment[:place]
            if (_in_order(other, event) or event.time_ns - other.time_ns >= gap_ns)
            and not (other.op in let_wait and _asks_after(other, event))
        }
        for place, event in enumerate(segment)
    }
    left, made = list(segment), list[Event]()
    while left:
        free = [event for event in left if waits[event].issubset(made)]
        soon = [event for event in free if _hastes(event)]
        mine = [event for event in free if made and event.client == made[-1].client != ""]
        chosen = (soon or mine or free)[0]
        made.append(chosen)
        left.remove(chosen)
    return made


def _asks_after(asked: Event, granted: Event) -> bool:
    """Return whether one client asks while another is granted the lock.

    A client that waits for long can ask after the grant instead.
    """
    if asked.op is None or granted.op is None or (asked.what, granted.what) != ("begin", "end"):
        return False
    return asked.op.f == granted.op.f == "acquire" and granted.op.type == "ok"


def _in_order(one: Event, other: Event) -> bool:
    """Return whether these two events must keep their order."""
    if one.client and one.client == other.client:
        return True
    if {one.what, other.what} == {"begin", "end"} and one.what == "end":
        return True
    if (_hastes(one) and _idle(other)) or (_hastes(other) and _idle(one)):
        return False
    return not (one.nodes.isdisjoint(other.nodes) and one.links.isdisjoint(other.links))


def _hastes(event: Event) -> bool:
    """Return whether the event must come before a real server syncs, within a second."""
    return (
        event.what == "inject"
        and event.fault is not None
        and SIMULATED[event.fault.family].unsynced_lost
    )


def _idle(event: Event) -> bool:
    """Return whether the event is a request without effect."""
    return event.call is not None and event.call.denied
