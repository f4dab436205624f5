"""Choices that take turns, so that a short run has each of them.

A run of a minute has some ten faults, and chance alone often leaves out one of eight kinds. So the
schedule and `--aim` draw with a source of chance that has decks (`Dealing`): `deal` chooses each
option once, in a random order, before it chooses one again. In the long run each comes as often as
by chance. With any other source of chance, as in hunts, `deal` is a plain choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
Found = TypeVar("Found")

_MOST_CARDS = 1000
"""The largest deck. Weights that need a larger one are left to chance."""


class Dealing(Random):
    """A source of chance with decks, which belong to an `entry` of --nemesis.

    `decks` is their seed, and `taken` how many cards each has dealt. A card depends on these alone:
    whoever restores an earlier `taken` deals the same card again.
    """

    decks: str = ""
    entry: str = ""
    taken: dict[str, int]

    def take(self, name: str) -> tuple[str, int]:
        """Take a card of a deck. Return the deck's seed, and how many cards it has dealt before."""
        deck = f"{self.entry}/{name}"
        number = self.taken.get(deck, 0)
        self.taken[deck] = number + 1
        return f"{self.decks}/{deck}", number

    def attempt(self, draw: Callable[[], Found | None]) -> Found | None:
        """Draw something. If the result is None, no turn was taken."""
        before = dict(self.taken)
        if (found := draw()) is None:
            self.taken = before
        return found


def dealing(seed: str, decks: str, taken: Mapping[str, int]) -> Dealing:
    """Return a source of chance that follows from a seed, with decks that have dealt so much."""
    found = Dealing(seed)
    found.decks, found.taken = decks, dict(taken)
    return found


def deal(
    random: Random,
    name: str,
    options: Sequence[T],
    weights: Sequence[float] | None = None,
    alike: Callable[[T], Hashable] | None = None,
) -> T:
    """Choose one of these options from the deck with this name.

    An option that is listed twice, or has weight 2, has two turns of a cycle. Options that are
    `alike` are spread over the cycle, so that the first few differ from one another.
    """
    if not isinstance(random, Dealing) or (cards := _cards(options, weights)) is None:
        return random.choice(options) if weights is None else random.choices(options, weights)[0]
    deck, number = random.take(name)
    cycle, place = divmod(number, len(cards))
    return _shuffled(Random(f"{deck}/{cycle}"), cards, alike or _itself)[place]


def one_in(random: Random, name: str, many: int) -> bool:
    """Return true in one of `many` cases."""
    if not isinstance(random, Dealing):
        return random.random() < 1 / many
    return deal(random, name, [True] + [False] * (many - 1))


def length(random: Random, name: str, least: float, most: float) -> float:
    """Draw a length from a range: from its upper half and its lower half in turn, the upper first.

    A fault that is too short shows nothing, and in a short run a kind comes once.
    """
    if not isinstance(random, Dealing):
        return random.uniform(least, most)
    middle = (least + most) / 2
    _, number = random.take(name)
    return random.uniform(least, middle) if number % 2 else random.uniform(middle, most)


def _itself(option: Hashable) -> Hashable:
    return option


def _cards(options: Sequence[T], weights: Sequence[float] | None) -> Sequence[T] | None:
    """Return the cards of one cycle; None if there are too many."""
    if weights is None:
        return options
    exact = [Fraction(repr(weight)) for weight in weights]
    whole = math.lcm(*(weight.denominator for weight in exact))
    turns = [int(weight * whole) for weight in exact]
    shared = math.gcd(*turns)
    if sum(turns) > _MOST_CARDS * shared:
        return None
    return [
        option for option, many in zip(options, turns, strict=True) for _ in range(many // shared)
    ]


def _shuffled(random: Random, cards: Sequence[T], alike: Callable[[T], Hashable]) -> Sequence[T]:
    """Shuffle a cycle. Of n cards that are alike, each nth part of the cycle has one."""
    groups: dict[Hashable, list[T]] = {}
    for card in cards:
        groups.setdefault(alike(card), []).append(card)
    placed: list[tuple[float, int, T]] = []
    for group in groups.values():
        begin = random.random()
        for number, card in enumerate(random.sample(group, len(group))):
            placed.append(((number + begin) / len(group), len(placed), card))
    return [card for _, _, card in sorted(placed, key=lambda one: one[:2])]
