"""A schedule: the list of integers that determines a run.

Its head sets up the workload (`HEAD` numbers for all, `EACH` for every client). Then each step of
the run has a number: 0 injects nothing, n injects action n of the table (hunt/faults/registry.py).
Missing numbers are zeros, so the empty list is the run without faults. Nearly all numbers are 0: in
memory a schedule contains only the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

HEAD, EACH = 1, 4
"""The head: a random seed; then for each client when it begins, how long it holds the lock, whether
it extends its lease (1) and hurries (2), and how many holds it makes after the first."""


class Aim(NamedTuple):
    """An injection that waits for an op: `after` steps of the `nth` op `f` of a client, counted
    from 0.

    The schedule of the run then contains it at the step of the injection.
    """

    client: int
    f: str
    nth: int
    after: int
    action: int


@dataclass(frozen=True)
class Schedule:
    """`head` as above; `injections`: (step, action) with rising steps; actions count from 1."""

    head: tuple[int, ...] = ()
    injections: tuple[tuple[int, int], ...] = ()

    def at(self, place: int) -> int:
        """Return a number of the head, 0 if it has fewer."""
        return self.head[place] if place < len(self.head) else 0

    def part(self, client: int) -> tuple[int, ...]:
        """Return the EACH numbers of a client in the head."""
        place = HEAD + EACH * client
        found = self.head[place : place + EACH]
        return found + (0,) * (EACH - len(found))

    def numbers(self, clients: int) -> list[int]:
        """Return the list of integers, without trailing zeros."""
        length = HEAD + EACH * clients
        found = [self.at(place) for place in range(length)]
        for step, action in self.injections:
            found += [0] * (length + step - len(found)) + [action]
        while found and not found[-1]:
            found.pop()
        return found

    @staticmethod
    def of(numbers: Sequence[int], clients: int) -> Schedule:
        length = HEAD + EACH * clients
        injections = tuple((step, n) for step, n in enumerate(numbers[length:]) if n)
        return Schedule(tuple(numbers[:length]), injections)

    @property
    def in_order(self) -> bool:
        """Whether its steps rise, beginning above 0."""
        steps = [0, *(step for step, _ in self.injections)]
        return all(before < after for before, after in pairwise(steps))

    @property
    def size(self) -> tuple[int, int, int, int]:
        """The sort key for simplicity: injections, set-up, actions, steps."""
        return (
            len(self.injections),
            sum(1 for number in self.head if number),
            sum(action for _, action in self.injections) + sum(self.head),
            sum(step for step, _ in self.injections),
        )
