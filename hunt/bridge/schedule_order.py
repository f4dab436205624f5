"""Orders the deeds of a simulated run so that real clients can reproduce them.

In the simulation the messages of several clients overlap all the time. A real client has to be
stopped wherever it waits for another one, which takes time that its lease does not have. So deeds
are reordered if that changes nothing: deeds that meet at a server, a link or a client keep their
order; a deed that ends before an op begins stays before it; and if a good part of a lease passed
between two deeds in the simulation, they keep their order. A client that waits longer than that
asks after the client that is granted the lock meanwhile, so that real clients do not race.

A loss of power has to come before a real server syncs, and may overtake denied requests: a server
that is down does not grant them either.
"""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.hunt.bridge.deeds import Deed
from fencepost.hunt.faults.registry import SIMULATED


def segments(found: Sequence[Deed], gap_ns: int) -> list[list[Deed]]:
    """Split the deeds where nothing happened for this time."""
    made: list[list[Deed]] = []
    for deed in found:
        if not made or deed.time_ns - made[-1][-1].time_ns >= gap_ns:
            made.append([])
        made[-1].append(deed)
    return made


def reorder(segment: Sequence[Deed]) -> list[Deed]:
    """Return the same deeds, with as few switches between clients as possible."""
    begun = {deed.op for deed in segment if deed.what == "begin"}
    let_wait = begun - {deed.op for deed in segment if deed.what == "end"}
    waits = {
        deed: {
            other
            for other in segment[:place]
            if _in_order(other, deed) and not (other.op in let_wait and _asks_after(other, deed))
        }
        for place, deed in enumerate(segment)
    }
    left, made = list(segment), list[Deed]()
    while left:
        free = [deed for deed in left if waits[deed].issubset(made)]
        soon = [deed for deed in free if _hastes(deed)]
        mine = [deed for deed in free if made and deed.client == made[-1].client != ""]
        chosen = (soon or mine or free)[0]
        made.append(chosen)
        left.remove(chosen)
    return made


def _asks_after(asked: Deed, granted: Deed) -> bool:
    """Return whether one client asks while another is granted the lock.

    A client that waits for long can ask after the grant instead.
    """
    if asked.op is None or granted.op is None or (asked.what, granted.what) != ("begin", "end"):
        return False
    return asked.op.f == granted.op.f == "acquire" and granted.op.type == "ok"


def _in_order(one: Deed, other: Deed) -> bool:
    """Return whether these two deeds must keep their order."""
    if one.client and one.client == other.client:
        return True
    if {one.what, other.what} == {"begin", "end"} and one.what == "end":
        return True
    if (_hastes(one) and _idle(other)) or (_hastes(other) and _idle(one)):
        return False
    return not (one.nodes.isdisjoint(other.nodes) and one.links.isdisjoint(other.links))


def _hastes(deed: Deed) -> bool:
    """Return whether the deed must come before a real server syncs, within a second."""
    return (
        deed.what == "inject"
        and deed.fault is not None
        and SIMULATED[deed.fault.family].unsynced_lost
    )


def _idle(deed: Deed) -> bool:
    """Return whether the deed is a request without effect."""
    return deed.call is not None and deed.call.denied
