"""Ops that never completed: each may happen at any later time, or never.

They are what makes checking hard, since none of them ever leaves. Three things tame them:

1. Equal actions are interchangeable, so a class of them is a counter, and a configuration
   records how many of each class it has used: one packed integer, a field a class.
2. A configuration that used fewer of every class can do whatever one that used more can:
   `covers` compares all fields in one subtraction (a guard bit a field stops the borrow).
3. An op is only worth taking if what it gives is wanted by another op that is still out:
   followed by anything else, it could be left out. `candidates` offers only those, indexed
   by the facet of the state in which they do anything.
"""

from __future__ import annotations

from collections.abc import Hashable

from checker.lincheck.model import ANY_STATE, UNSAID, Action, Model

FIELD = 24  # bits a class: 2**23 - 1 crashed ops of one class, and the guard bit
FULL = (1 << FIELD - 1) - 1
COST_FIELD = 40  # the lowest bits of a record: what the ops used would have been worth
COST = (1 << COST_FIELD - 1) - 1
ANYWHERE, SOMEWHERE = 3, 1  # what an op is worth that works in every state, or in some only


class Crashed:
    """The crashed ops of one object, and what every op that is still out wants."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.counts: dict[int, int] = {}  # action id -> how many
        self.guards = 1 << COST_FIELD - 1
        self.shifts: dict[int, int] = {}
        self.freed: list[int] = []
        self._costs: dict[int, int] = {}
        self.wanted: dict[Hashable, int] = {}
        self.anything_wanted = 0
        self.overwriters = 0
        self._borrowed = False
        self._hints: dict[int, tuple[Hashable, Hashable]] = {}
        self._by_needs: dict[Hashable, dict[int, None]] = {}
        self._relevant: dict[Hashable, dict[int, None]] = {}
        self._by_gives: dict[Hashable, dict[int, None]] = {}

    def copy(self) -> Crashed:
        """The same, going its own way from here. What both have is copied when one changes it."""
        other = Crashed.__new__(Crashed)
        other.__dict__.update(self.__dict__)
        other.wanted = self.wanted.copy()
        self._borrowed = other._borrowed = True
        return other

    def _own(self) -> None:
        if self._borrowed:
            self.counts, self.shifts = self.counts.copy(), self.shifts.copy()
            self.freed, self._hints = self.freed.copy(), self._hints.copy()
            self._costs = self._costs.copy()
            self._by_needs = {needs: own.copy() for needs, own in self._by_needs.items()}
            self._relevant = {needs: own.copy() for needs, own in self._relevant.items()}
            self._by_gives = {gives: own.copy() for gives, own in self._by_gives.items()}
            self._borrowed = False

    def add(self, number: int, action: Action) -> None:
        """One more crashed op with this action; its action's wants must have been counted."""
        self._own()
        if number in self.counts:
            self.counts[number] += 1
            return
        self.counts[number] = 1
        needs, gives = self.model.needs(action), self.model.gives(action)
        self._hints[number] = needs, gives
        self._by_needs.setdefault(needs, {})[number] = None
        self._by_gives.setdefault(gives, {})[number] = None
        if gives is UNSAID or gives in self.wanted:
            self._relevant.setdefault(needs, {})[number] = None

    def remove(self, number: int) -> None:
        """Forgets a class that can do nothing any more."""
        self._own()
        needs, gives = self._hints.pop(number)
        del self.counts[number]
        del self._by_needs[needs][number]
        del self._by_gives[gives][number]
        if not self._by_needs[needs]:
            del self._by_needs[needs]
        if not self._by_gives[gives]:
            del self._by_gives[gives]
        self._relevant.get(needs, {}).pop(number, None)
        if not self._relevant.get(needs, True):
            del self._relevant[needs]

    def want(self, action: Action) -> None:
        """An op came that is out from now on, open or crashed."""
        wants = self.model.wants(action)
        if wants is UNSAID:
            self.anything_wanted += 1
        elif wants is ANY_STATE:
            self.overwriters += 1
        elif wants in self.wanted:
            self.wanted[wants] += 1
        else:
            self.wanted[wants] = 1
            if wants in self._by_gives:
                self._own()
            for number in self._by_gives.get(wants, ()):
                self._relevant.setdefault(self._hints[number][0], {})[number] = None

    def unwant(self, action: Action) -> None:
        """An op that was out is not any more."""
        wants = self.model.wants(action)
        if wants is UNSAID:
            self.anything_wanted -= 1
        elif wants is ANY_STATE:
            self.overwriters -= 1
        elif self.wanted[wants] > 1:
            self.wanted[wants] -= 1
        else:
            del self.wanted[wants]
            if wants in self._by_gives:
                self._own()
            for number in self._by_gives.get(wants, ()):
                self._relevant[self._hints[number][0]].pop(number, None)

    def serves(self, action: Action) -> bool:
        """Could this open op help any other to happen, or be overwritten by one?"""
        if self.anything_wanted or self.overwriters:
            return True
        gives = self.model.gives(action)
        return gives is UNSAID or gives in self.wanted

    def candidates(self, facet: Hashable) -> list[int]:
        """Action ids worth trying in a state of this facet."""
        index = self._by_needs if self.anything_wanted else self._relevant
        found = list(index.get(UNSAID, ()))
        if facet is not UNSAID:
            found += index.get(facet, ())
        return found

    def unit(self, number: int) -> int:
        """What using one op of the class adds to a configuration's record."""
        shift = self.shifts.get(number)
        if shift is None:
            self._own()
            shift = self.freed.pop() if self.freed else COST_FIELD + FIELD * len(self.shifts)
            self.shifts[number] = shift
            self._costs[number] = self.cost(number)
            self.guards |= 1 << (shift + FIELD - 1)
        return (1 << shift) + self._costs[number]

    def cost(self, number: int) -> int:
        """What one op of the class is worth."""
        return ANYWHERE if self._hints[number][0] is UNSAID else SOMEWHERE

    def left(self, number: int, used: int) -> bool:
        """Is there an op of this class that a configuration with this record has not used?"""
        shift = self.shifts.get(number)
        if shift is None:
            return True
        return (used >> shift) & FULL < self.counts[number]

    def spent(self, records: list[int]) -> tuple[int, list[int]]:
        """What every one of these records has used is gone for good: (what to subtract from
        each, the classes with nothing left, which are forgotten here)."""
        self._own()
        common = 0
        over = []
        for number, shift in list(self.shifts.items()):
            least = min((record >> shift) & FULL for record in records)
            if least:
                common += (least << shift) + least * self._costs[number]
            if number in self.counts:
                self.counts[number] -= least
                if self.counts[number]:
                    continue
                over += [number] * least
                self.counts[number] = least
                self.remove(number)
            if all((record >> shift) & FULL == least for record in records):
                del self.shifts[number], self._costs[number]
                self.freed.append(shift)
                self.guards ^= 1 << (shift + FIELD - 1)
        return common, over
