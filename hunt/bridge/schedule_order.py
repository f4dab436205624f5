"""Puts the deeds of a simulated run into an order in which real clients can do them.

In the simulation messages of several clients pass one another all the time. A real client is
stopped at each place where it has to wait for somebody else, which takes time that its lease does
not have. So deeds are moved past one another where that changes nothing: what meets at a server, a
link or a client keeps its order; what is over before an op begins stays before it; and where the
simulation let a good part of a lease go by, all that came before stays before. Who is let wait for
longer than that asks after whoever is granted the lock meanwhile, so that real clients do not race.

A loss of power has to come before a real server syncs, and may overtake requests that were denied:
whoever sends them to a server that is down is not granted anything either.
"""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.hunt.bridge.events import Deed
from fencepost.hunt.faults.registry import SIMULATED


def segments(found: Sequence[Deed], gap_ns: int) -> list[list[Deed]]:
    """The deeds between times in which nothing happened for so long."""
    made: list[list[Deed]] = []
    for deed in found:
        if not made or deed.time_ns - made[-1][-1].time_ns >= gap_ns:
            made.append([])
        made[-1].append(deed)
    return made


def straightened(segment: Sequence[Deed]) -> list[Deed]:
    """The same deeds, each client's as much in one go as they can be."""
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
    """Whether one client asks and another is granted the lock: who is let wait for long may as well
    ask once the other has it."""
    if asked.op is None or granted.op is None or (asked.what, granted.what) != ("begin", "end"):
        return False
    return asked.op.f == granted.op.f == "acquire" and granted.op.type == "ok"


def _in_order(one: Deed, other: Deed) -> bool:
    """Whether these keep their order."""
    if one.client and one.client == other.client:
        return True
    if {one.what, other.what} == {"begin", "end"} and one.what == "end":
        return True
    if (_hastes(one) and _idle(other)) or (_hastes(other) and _idle(one)):
        return False
    return not (one.nodes.isdisjoint(other.nodes) and one.links.isdisjoint(other.links))


def _hastes(deed: Deed) -> bool:
    """Whether it has to come before a real server has synced: within a second."""
    return (
        deed.what == "inject"
        and deed.fault is not None
        and SIMULATED[deed.fault.family].unsynced_lost
    )


def _idle(deed: Deed) -> bool:
    """Whether it is a request that did nothing."""
    return deed.call is not None and deed.call.denied
