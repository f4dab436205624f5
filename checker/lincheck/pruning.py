"""Prunes the search. Each rule keeps the verdict.

goals    the op of a cell that observes and returns next must still become possible (horizon.py
         finds that op, and when the goal binds)
unseen   states that differ only in parts that no observer can see are one state
movers   ops that enable neither the returning op nor any that enables it can wait
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from fencepost.checker.lincheck.crashed import Crashed
from fencepost.checker.lincheck.model import Action, Model
from fencepost.checker.lincheck.slots import Slots
from fencepost.checker.lincheck.table import Table

NOBODY = -2  # the key of the state that represents all unseen ones
Cell = frozenset[Hashable] | None


class Goal(NamedTuple):
    """The observer of a cell that returns next, for one extension of configurations.

    bit: its slot, 0 if it is not invoked yet. resets: the open ops that reset; the goal binds the
    configurations that have them all. reached: results of `reaches`, by state.
    """

    action: Action
    bit: int
    resets: int
    reached: dict[int, bool]
    reaches: Callable[[object, Action], bool]
    table: Table

    def lost(self, state: int, done: int) -> bool:
        """Return whether no way leads from this state to the goal."""
        if done & self.bit or done & self.resets != self.resets:
            return False
        found = self.reached.get(state)
        if found is None:
            found = self.reaches(self.table.states[state], self.action)
            self.reached[state] = found
        return not found


class Unseen(NamedTuple):
    """Until the open ops that replace are placed, only `observers` can come: states that they
    cannot distinguish are alike. memo: state -> its representative, and that of NOBODY."""

    observers: list[Action]
    memo: dict[int, int]


class Pruning:
    """Pruning rules for one search, derived from later events."""

    def __init__(self, model: Model, table: Table) -> None:
        self._model, self._table = model, table
        self._goals: dict[Cell, tuple[int, int]] = {}  # cell -> (op, its action's number)
        self._reached: dict[int, dict[int, bool]] = {}  # a goal's action -> state -> reaches
        self._unseen: Unseen | None = None

    def copy(self) -> Pruning:
        """Return an independent copy; memoized results are shared."""
        other = Pruning(self._model, self._table)
        other._goals = self._goals.copy()
        other._reached = self._reached
        other._unseen = self._unseen
        return other

    def aim(self, cell: Cell, op: int | None, action: Action | None) -> None:
        """Set op `op` as the next observer of the cell to return, with no op that resets invoked
        before: states from which it cannot become possible are dead ends. None: no goal."""
        if op is None or action is None:
            self._goals.pop(cell, None)
        else:
            self._goals[cell] = op, self._table.action_number(action)

    def hide(self, observers: list[Action] | None) -> None:
        """Note that until the open ops that replace are placed, only these observers can come.
        None: no such op is open."""
        if observers is None:
            self._unseen = None
        elif self._unseen is None or self._unseen.observers != observers:
            self._unseen = Unseen(observers, {})

    def forget(self) -> None:
        """Forget memoized states, because their numbers may be dropped."""
        self._reached.clear()
        self._unseen = None

    def live(self) -> set[int]:
        """Return the numbers of the goals' actions."""
        return {action for _, action in self._goals.values()}

    def goal(self, number: int, slots: Slots) -> Goal | None:
        """Return the goal of the cell that this action touches, or None."""
        if not self._goals:
            return None
        cell = self._model.cells(self._table.actions[number])
        if cell not in self._goals:
            return None
        assert self._model.reaches is not None
        op, wanted = self._goals[cell]
        return Goal(
            self._table.actions[wanted],
            slots.ops[op][0] if op in slots.ops else 0,
            self._kind(self._model.resets, slots),
            self._reached.setdefault(wanted, {}),
            self._model.reaches,
            self._table,
        )

    def replacing(self, slots: Slots) -> int:
        """Return the slots that must all be done before a state is seen again; 0: `stand_in` is
        idle."""
        return 0 if self._unseen is None else self._kind(self._model.replaces, slots)

    def stand_in(self, state: int) -> int:
        """Return the same state, or the representative of all states that no observer can see."""
        assert self._unseen is not None
        observers, memo = self._unseen
        stand_in = memo.get(state)
        if stand_in is None:
            stand_in, reaches = state, self._model.reaches
            assert reaches is not None
            value = self._table.states[state]
            if not any(reaches(value, observer) for observer in observers):
                stand_in = memo.setdefault(NOBODY, state)
            memo[state] = stand_in
        return stand_in

    def movers(
        self, last: int, number: int, slots: Slots, crashed: Crashed
    ) -> list[tuple[int, int]]:
        """Return the open ops that a way to the op of slot `last` may pass, including that op."""
        chosen = [] if self._table.observing[number] else [(last, number)]
        serves, actions = crashed.serves, self._table.actions
        chosen += [
            (bit, other)
            for bit, other in slots.movers.items()
            if bit != last and serves(actions[other])
        ]
        cells = self._model.cells(actions[number])
        if cells is None or len(chosen) < 2:
            return chosen
        out = [*slots.movers.values(), *slots.observers.values(), *crashed.counts]
        reach = connected(cells, [self._model.cells(actions[other]) for other in out])
        if reach is None:
            return chosen
        return [
            mover
            for mover in chosen
            if not reach.isdisjoint(self._model.cells(actions[mover[1]]) or reach)
        ]

    def _kind(self, kind: Callable[[Action], bool], slots: Slots) -> int:
        """Return the slots of the open ops of this kind."""
        actions = self._table.actions
        return sum(slot for slot, action in slots.movers.items() if kind(actions[action]))


def connected(cells: frozenset[Hashable], touched: list[Cell]) -> set[Hashable] | None:
    """Return the cells transitively connected to `cells` by ops; None if that is all of them.

    Ops on other cells commute with all that leads to the returning op, so they can wait. An op that
    only observes connects its cells as well: what it saw in one depends on the others.
    """
    reach = set(cells)
    joining = [own for own in touched if own is None or len(own) > 1]
    grew = True
    while grew:
        grew = False
        for own in joining:
            if own is None:
                return None
            if not reach.isdisjoint(own) and not own <= reach:
                reach |= own
                grew = True
    return reach
