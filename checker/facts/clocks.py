"""How well the clocks of a run's nodes are known relative to each other.

Clients on one kernel share a clock. Clients on other hosts are stamped with their own, whose offset
the harness measured to a bound before the run (`clocks` in run.json). Two moments on two hosts are
ordered only if they are further apart than both bounds together. Stamps may be coarse: equal ones
of two processes are not ordered, wherever the history has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.checker.history.history import Op


class Clocks:
    """The bounds of a test's clocks, in ns; 0 for a node that uses the harness' clock."""

    def __init__(self, test: Mapping[str, Any] | None = None) -> None:
        bounds = (test or {}).get("clocks") or {}
        self._bounds = {node: _bound(clock) for node, clock in bounds.items()}
        self._any = any(self._bounds.values())

    def __bool__(self) -> bool:
        """Return whether any clock is known only to a bound."""
        return self._any

    @property
    def key(self) -> tuple[tuple[str, int], ...]:
        """Return a key for History.once, equal for tests with the same bounds."""
        return tuple(sorted((node, bound) for node, bound in self._bounds.items() if bound))

    def bound(self, node: str | None) -> int:
        """Return the bound on the error of this node's stamps, in ns."""
        return self._bounds.get(node or "", 0)

    def between(self, one: str | None, other: str | None) -> int:
        """Return how far apart stamps of two nodes must be to be ordered: 0 on one node."""
        if not self._any or one == other:
            return 0
        return self.bound(one) + self.bound(other)

    def before(self, first: Op, second: Op) -> bool:
        """Return whether `first` certainly happened before `second`. The history's order decides
        between two events of one process on one clock."""
        gap = self.between(first.node, second.node)
        if gap or first.process != second.process:
            return first.time + gap < second.time
        return first.index < second.index


def _bound(clock: Mapping[str, Any]) -> int:
    # Earlier runs call the bound `error`.
    return int(clock.get("bound_ns", clock.get("error_ns", 0)))
