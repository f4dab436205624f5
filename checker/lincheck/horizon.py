"""What later results say about the present: the next observer that will return is a goal.

Where the whole history is known, so is what the next get of a key will return. If no op that
resets can come between, every configuration that has not placed that get yet must be in a
state from which it can become possible, `Model.reaches`: appended strings must be a prefix, sets a
subset. It saves the search all the orders of concurrent appends but the one that was seen.

While an op that resets is open and not placed, that does not hold. But if it replaces the state,
only the observers that are open, or invoked before it returns, can see the state before it, and
all states that none of them can see are alike.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Operation
from fencepost.checker.lincheck.search import Search

Cell = frozenset[Hashable] | None


class _Goal(NamedTuple):
    observer: Operation
    from_position: int  # where the last op that resets before the observer's return is invoked


class Horizon:
    """Tells a search its goals as the events pass."""

    def __init__(self, model: Model, operations: list[Operation], search: Search) -> None:
        self.cells, self.search = model.cells, search
        self.goals: dict[Cell, list[_Goal]] = {}
        self.replaces = model.replaces
        self.replacing: dict[int, int] = {}  # open op's id -> where it returns
        by_cell: dict[Cell, list[Operation]] = {}
        for operation in operations:
            by_cell.setdefault(model.cells(operation.action), []).append(operation)
        for cell, own in by_cell.items():
            self.goals[cell] = _goals(model, own)
            self._aim(cell, -1)
        self.observers = [op for op in operations if model.observes(op.action)]
        self.alone = len(by_cell) == 1  # else a state is more than what one cell's observers see

    def copy(self, search: Search) -> Horizon:
        """The same, for a copy of the search."""
        other = Horizon.__new__(Horizon)
        other.__dict__.update(self.__dict__)
        other.search = search
        other.goals = {cell: goals.copy() for cell, goals in self.goals.items()}
        other.replacing = self.replacing.copy()
        return other

    def passed(self, operation: Operation, position: int) -> None:
        """The event of this operation at this position has been searched."""
        self._aim(self.cells(operation.action), position)
        if self.alone:
            self._hide(operation, position)

    def _hide(self, operation: Operation, position: int) -> None:
        if operation.returned is not None and self.replaces(operation.action):
            if position == operation.id:
                self.replacing[operation.id] = operation.returned
            else:
                del self.replacing[operation.id]
        if not self.replacing:
            self.search.hide(None)
            return
        last = max(self.replacing.values())
        self.search.hide(
            [op.action for op in self.observers if op.id < last and end(op) > position]
        )

    def _aim(self, cell: Cell, position: int) -> None:
        goals = self.goals[cell]
        while goals and end(goals[-1].observer) <= position:
            goals.pop()
        if goals and goals[-1].from_position <= position:
            self.search.aim(cell, goals[-1].observer.id, goals[-1].observer.action)
        else:
            self.search.aim(cell, None, None)


def _goals(model: Model, operations: list[Operation]) -> list[_Goal]:
    """The goals of one cell, the first one last."""
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
    """Where an observer returned; those that never did are no operations."""
    assert operation.returned is not None
    return operation.returned
