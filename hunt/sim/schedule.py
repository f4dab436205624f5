"""A schedule: the list of integers that says all that is not the default in a run.

Its head sets up the workload (`HEAD` numbers for all, `EACH` for every client); then comes a number
for each step of the run: 0 goes on, n injects action n of the table (hunt/faults/registry.py). A
list that ends early goes on with zeros, so the empty list is the run in which nothing goes wrong.
Nearly all numbers are 0: in memory a schedule has only the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

HEAD, EACH = 1, 4
"""The head: a number that all chance comes from; of each client: when it begins, how long it holds
the lock, whether it extends its lease, and how many holds it wants beside the first."""


class Aim(NamedTuple):
    """An injection that waits for an op: `after` so many steps of the `nth` op `f` of a client,
    counted from 0. The schedule of the run then has it at the step where it was injected."""

    client: int
    f: str
    nth: int
    after: int
    action: int


@dataclass(frozen=True)
class Schedule:
    """`head` as above; `injections`: (step, action), steps rising, actions from 1 on."""

    head: tuple[int, ...] = ()
    injections: tuple[tuple[int, int], ...] = ()

    def at(self, place: int) -> int:
        """A number of the head."""
        return self.head[place] if place < len(self.head) else 0

    def numbers(self, clients: int) -> list[int]:
        """As the list of integers, without zeros at its end."""
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
        """Whether its steps rise, from the first on."""
        steps = [0, *(step for step, _ in self.injections)]
        return all(before < after for before, after in pairwise(steps))

    @property
    def size(self) -> tuple[int, int, int, int]:
        """By which one schedule is simpler than another: injections, set-up, actions, steps."""
        return (
            len(self.injections),
            sum(1 for number in self.head if number),
            sum(action for _, action in self.injections) + sum(self.head),
            sum(step for step, _ in self.injections),
        )
