"""Assigns each node a lane of the timeline, and each hold a row of its lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.holds import Hold

NOWHERE = "clients"
"""The lane of ops that name no node, and of nodes beyond the last lane."""
LANES = 30
DEEPEST = 6
"""Largest number of rows in a lane; further holds share the last row."""


class Lanes:
    """One lane per client node, then one per other node that a fault touched or that granted."""

    def __init__(
        self,
        test: Mapping[str, Any],
        seen: Iterable[str | None],
        on: Sequence[Fault],
        granting: Iterable[str] = (),
    ) -> None:
        nodes = [node or NOWHERE for node in seen]
        clients = list(dict.fromkeys([*map(str, test.get("clients") or ()), *nodes]))
        touched = {node for fault in on for node in affected(fault)} | set(granting)
        touched -= set(clients)
        known = [str(node) for node in test.get("servers") or () if node in touched]
        rest = sorted(touched - set(known))
        named = [(name, "client") for name in clients] + [(name, "server") for name in known + rest]
        if len(named) > LANES:
            named = [(NOWHERE, "client"), *(one for one in named if one[0] != NOWHERE)][:LANES]
        self._kinds = dict(named)
        self._places = {name: place for place, name in enumerate(self._kinds)}
        self._depths = [1] * len(self._kinds)

    def of(self, node: str | None) -> int:
        """Return the number of a node's lane."""
        found = self._places.get(node or NOWHERE)
        return self._places.get(NOWHERE, 0) if found is None else found

    def all_of(self, nodes: Iterable[str]) -> list[int]:
        """Return the lanes of several nodes, without duplicates."""
        return list(dict.fromkeys(map(self.of, nodes)))

    def rows(self, found: Iterable[Hold]) -> list[tuple[int, int]]:
        """Return lane and row of each hold: the first row that no earlier hold still occupies."""
        taken: dict[int, list[float]] = {}
        places = []
        for hold in found:
            lane = self.of(hold.node)
            ends = taken.setdefault(lane, [])
            row = next((r for r, end in enumerate(ends) if end <= hold.start), len(ends))
            row = min(row, DEEPEST - 1)
            ends[row : row + 1] = [hold.strict_end]
            self._depths[lane] = max(self._depths[lane], row + 1)
            places.append((lane, row))
        return places

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        """Yield name, kind and depth of each lane, from top to bottom."""
        return (
            (name, kind, depth)
            for (name, kind), depth in zip(self._kinds.items(), self._depths, strict=True)
        )


def affected(fault: Fault) -> list[str]:
    """Return the nodes that a fault touches: its targets, and both ends of every link that it
    cuts."""
    links = [str(node) for link in fault.arguments.get("links") or () for node in link]
    return list(dict.fromkeys([*map(str, fault.targets), *links]))


def struck(fault: Fault) -> list[str]:
    """Return the nodes that the fault is about: if all links end at one node, that node.

    A server that is cut off from nine others is one node's trouble, not ten's.
    """
    links = [{str(node) for node in link} for link in fault.arguments.get("links") or ()]
    centre = set.intersection(*links) if links else set()
    return [node for node in affected(fault) if node in centre] or affected(fault)
