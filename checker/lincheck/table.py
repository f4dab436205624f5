"""Numbers states and actions, so that the search works on small ints.

The model's own code runs once for each pair of state and action; the results are kept while the
state and the action are in use.
"""

from __future__ import annotations

from collections.abc import Hashable

from fencepost.checker.lincheck.model import Action, Inconsistent, Model, State

IMPOSSIBLE = -1
COMPACT_AT = 20_000  # states and actions before unused ones are dropped


class Table:
    """States and actions by number, and the memoized steps between them.

    Numbers are never reused, so that unused entries can be dropped during a search.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.states: dict[int, State] = {}
        self.state_numbers: dict[State, int] = {}
        self.facets: dict[int, Hashable] = {}
        self.actions: dict[int, Action] = {}
        self.numbers: dict[Action, int] = {}
        self.observing: dict[int, bool] = {}
        self.steps: dict[int, dict[int, int]] = {}
        self.given = 0
        self.compact_at = COMPACT_AT

    def state_number(self, state: State) -> int:
        number = self.state_numbers.get(state)
        if number is None:
            number = self.state_numbers[state] = self.given = self.given + 1
            self.states[number] = state
            self.facets[number] = self.model.facet(state)
        return number

    def action_number(self, action: Action) -> int:
        number = self.numbers.get(action)
        if number is None:
            number = self.numbers[action] = self.given = self.given + 1
            self.actions[number] = action
            self.steps[number] = {}
            self.observing[number] = self.model.observes(action)
        return number

    def step(self, action: int, state: int) -> int:
        """Return the number of the state after this step, or IMPOSSIBLE, and memoize it."""
        after = self.model.step(self.states[state], self.actions[action])
        number = IMPOSSIBLE if type(after) is Inconsistent else self.state_number(after)
        self.steps[action][state] = number
        return number

    def crowded(self) -> bool:
        return len(self.states) + len(self.actions) > self.compact_at

    def compact(self, states: set[int], actions: set[int]) -> None:
        """Drop all but these states and actions, and every memoized step."""
        for number in self.states.keys() - states:
            del self.state_numbers[self.states.pop(number)], self.facets[number]
        for number in self.actions.keys() - actions:
            del self.numbers[self.actions.pop(number)], self.observing[number], self.steps[number]
        for memo in self.steps.values():
            memo.clear()
        self.compact_at = 2 * (len(self.states) + len(self.actions)) + COMPACT_AT
