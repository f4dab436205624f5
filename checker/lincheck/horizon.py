"""Uses later results as goals: the next observer that will return must stay possible.

In a complete history the result of the next get of a key is known. If no op that resets can come
between, every configuration that has not placed that get yet must be in a state from which it can
become possible, `Model.reaches`: appended strings must be a prefix, sets a subset. This saves the
search all orders of concurrent appends but the one that was seen.

While an op that resets is open and not placed, that does not hold. But if it replaces the state,
only the observers that are open, or invoked before it returns, can see the state before it, and all
states that they cannot distinguish are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Operation
from fencepost.checker.lincheck.pruning import Cell
from fencepost.checker.lincheck.search import Search


class _Goal(NamedTuple):
    observer: Operation
    from_position: int  # the invocation of the last op that resets before the observer's return


@dataclass(slots=True, eq=False)
class Horizon:
    """Passes goals to a search as the events pass.

    goals: the future ones of each cell, the next one last. replacing: open op's id -> its return.
    observers: all of them. hides: states that no observer can see are merged.
    """

    model: Model
    search: Search
    goals: dict[Cell, list[_Goal]]
    replacing: dict[int, int]
    observers: list[Operation]
    hides: bool

    @classmethod
    def begin(cls, model: Model, operations: list[Operation], search: Search) -> Horizon:
        """Build a horizon for these operations before the first event."""
        by_cell: dict[Cell, list[Operation]] = {}
        for operation in operations:
            by_cell.setdefault(model.cells(operation.action), []).append(operation)
        goals = {cell: _goals(model, own) for cell, own in by_cell.items()}
        observers = [op for op in operations if model.observes(op.action)]
        # With more cells, a state holds more than the observers of one cell see; paths show all
        # states.
        hides = len(by_cell) == 1 and not search.trace
        horizon = cls(model, search, goals, {}, observers, hides)
        for cell in goals:
            horizon._aim(cell, -1)
        return horizon

    def copy(self, search: Search) -> Horizon:
        """Copy it for a copy of the search."""
        goals = {cell: own.copy() for cell, own in self.goals.items()}
        replacing = self.replacing.copy()
        return Horizon(self.model, search, goals, replacing, self.observers, self.hides)

    def passed(self, operation: Operation, position: int) -> None:
        """Note that the event of this operation at this position has been searched."""
        self._aim(self.model.cells(operation.action), position)
        if self.hides:
            self._hide(operation, position)

    def _hide(self, operation: Operation, position: int) -> None:
        if operation.returned is not None and self.model.replaces(operation.action):
            if position == operation.id:
                self.replacing[operation.id] = operation.returned
            else:
                del self.replacing[operation.id]
        if not self.replacing:
            self.search.pruning.hide(None)
            return
        last = max(self.replacing.values())
        self.search.pruning.hide(
            [op.action for op in self.observers if op.id < last and end(op) > position]
        )

    def _aim(self, cell: Cell, position: int) -> None:
        goals = self.goals[cell]
        while goals and end(goals[-1].observer) <= position:
            goals.pop()
        if goals and goals[-1].from_position <= position:
            self.search.pruning.aim(cell, goals[-1].observer.id, goals[-1].observer.action)
        else:
            self.search.pruning.aim(cell, None, None)


def _goals(model: Model, operations: list[Operation]) -> list[_Goal]:
    """Return the goals of one cell, the first one last."""
    events: list[tuple[int, Operation]] = []
    for operation in operations:
        if model.resets(operation.action):
            events.append((operation.id, operation))
        elif operation.returned is not None and model.observes(operation.action):
            events.append((operation.returned, operation))
    goals = []
    last_reset = -1
    for position, operation in sorted(events):
        if not model.resets(operation.action):
            goals.append(_Goal(operation, last_reset))
        elif operation.returned is None:
            break  # it may come at any time from here on
        else:
            last_reset = position
    goals.reverse()
    return goals


def end(operation: Operation) -> int:
    """Return an observer's return; those that never returned are not operations."""
    assert operation.returned is not None
    return operation.returned
