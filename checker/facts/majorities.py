"""Majorities: the faults during which a majority of the servers is always left.

A fault that separates nothing but clients from servers is a *cut of clients*. It takes no server
away from any other client, so each of its clients has a majority of its own: the servers that are
up, and that no such cut keeps from it. Which nodes are on the small side of a cut does not matter
here: with two clients and two servers that depends on how many they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from fencepost.checker.facts.ends import FOREVER
from fencepost.checker.facts.faults import Fault

Far = Mapping[str, frozenset[str]]
"""The servers from which a cut separates each of its clients."""


def cut_off(fault: Fault, clients: frozenset[str]) -> frozenset[str]:
    """Return the clients of a fault that separates nothing but clients from others. Empty if it
    separates others, or if nothing is known of it."""
    ends = [clients.intersection(link) for link in fault.links or ()]
    alone = fault.impairs is not None and all(ends)
    return frozenset().union(*ends) if alone else frozenset()


def survived(
    of_servers: Iterable[Fault],
    cuts: Iterable[Fault],
    clients: frozenset[str],
    servers: frozenset[str],
) -> frozenset[str]:
    """Return the names of the faults during which a majority of the servers was always left: faults
    of servers, and cuts of clients from nothing but servers, of which each client needs one."""
    marks: list[tuple[float, int, Fault, Far | None]] = []
    left = _Left(servers)
    for fault in of_servers:
        marks += _marks(fault, None)
    for fault in cuts:
        marks += _marks(fault, _far(fault, clients, servers))
        if not all(servers.intersection(link) for link in fault.links or ()):
            left.lost.add(fault.name)
    marks.sort(key=lambda mark: mark[:2])
    for _, order, fault, far in marks:
        left.change(fault, far, begins=order == 1)
    return frozenset(mark[2].name for mark in marks) - left.lost


def _far(fault: Fault, clients: frozenset[str], servers: frozenset[str]) -> Far:
    found: dict[str, frozenset[str]] = {}
    for link in fault.links or ():
        for client in clients.intersection(link):
            found[client] = found.get(client, frozenset()) | servers.intersection(link)
    return found


def _marks(fault: Fault, far: Far | None) -> list[tuple[float, int, Fault, Far | None]]:
    over = FOREVER if fault.end is None else fault.end
    # A fault ends before another begins at the same moment, unless it began then as well.
    return [(fault.start, 1, fault, far), (over, 2 if over == fault.start else 0, fault, far)]


class _Left:
    """The servers that are left, to all and to each client. `lost`: the names of the faults during
    which these were no majority."""

    def __init__(self, servers: frozenset[str]) -> None:
        self.lost: set[str] = set()
        self._servers = servers
        self._away = Counter[str]()
        self._unknown = 0
        # Those that are active, and not in `lost` yet; the cuts by client.
        self._active: set[str] = set()
        self._cuts: dict[str, set[str]] = {}
        self._far: dict[str, Counter[str]] = {}

    def change(self, fault: Fault, far: Far | None, begins: bool) -> None:
        step = 1 if begins else -1
        if far is None:
            nodes = (fault.impairs or frozenset(fault.targets)) & self._servers
            self._away.update(dict.fromkeys(nodes, step))
            self._unknown += step if fault.impairs is None else 0
            (self._active.add if begins else self._active.discard)(fault.name)
        for client, servers in (far or {}).items():
            self._far.setdefault(client, Counter()).update(dict.fromkeys(servers, step))
            cuts = self._cuts.setdefault(client, set())
            (cuts.add if begins else cuts.discard)(fault.name)
        if begins:  # an end takes no server away
            self._look(list(self._cuts) if far is None else list(far))

    def _look(self, clients: Iterable[str]) -> None:
        """Note the faults that leave no majority now, to all or to one of these clients."""
        down = _those(self._away)
        if self._too_many(down):
            self.lost |= self._active
            self._active.clear()
        for client in clients:
            if self._cuts[client] and self._too_many(down | _those(self._far[client])):
                self.lost |= self._cuts[client]
                self._cuts[client].clear()

    def _too_many(self, down: set[str]) -> bool:
        return bool(self._unknown) or 2 * len(down) >= len(self._servers)


def _those(counted: Mapping[str, int]) -> set[str]:
    return {one for one, many in counted.items() if many > 0}
