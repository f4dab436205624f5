"""Ops that never completed: each may happen at any later time, or never.

They are what makes checking hard, because they stay open forever. Three measures limit them:

1. Equal actions are interchangeable, so a class of them is a counter, and a configuration
   records how many of each class it has used: one packed integer, a field per class.
2. A configuration that used fewer of every class can do everything that one with more can:
   `put` compares all fields in one subtraction (a guard bit per field stops the borrow).
3. An op is only worth taking if another pending op wants what it gives: followed by any other
   op, it could be left out. `moves` offers only those, indexed by the facet of the state in
   which they have an effect.

If that is not enough, only some classes are counted (`counted`). Of the others a configuration may
use as many as it likes, and its record shows that it used too many. Records are compared by the
counted classes alone, so that few are kept. An op that cannot be placed even so cannot be placed at
all, and a placement that overuses no class is a linearization.
"""

from __future__ import annotations

from collections.abc import Hashable

from fencepost.checker.lincheck.model import ANY_STATE, UNSAID, Action, Model

FIELD = 24  # bits per class: 2**22 - 1 crashed ops of one class, OVER, and the guard bit
OVER = 1 << FIELD - 2  # more ops of an uncounted class were used than there are
FULL = OVER - 1
COST_FIELD = 40  # the lowest bits of a record: the total worth of the ops used
COST = (1 << COST_FIELD - 1) - 1
FAULT = 1 << COST_FIELD  # the next field: the number of overused classes
CLASSES = COST_FIELD + FIELD  # where the classes' fields begin
ANYWHERE, SOMEWHERE = 3, 1  # the worth of an op that works in every state, or in some only


def faults(used: int) -> int:
    """Return the number of classes that this record overuses."""
    return used >> COST_FIELD & FULL


class Crashed:
    """The crashed ops of one object, and the wants of all pending ops."""

    def __init__(self, model: Model, counted: frozenset[Action] | None = None) -> None:
        """Start without ops. counted: the actions whose classes are counted; None: all."""
        self.model = model
        self.counted = counted
        self.counts: dict[int, int] = {}  # action id -> how many
        self.uncounted: set[int] = set()  # action ids that are not counted
        self.guards = 1 << COST_FIELD - 1
        self.compared = self.guards  # the bits that are compared
        if counted is not None:
            self.guards |= 1 << CLASSES - 1
            self.compared = 1 << CLASSES - 1
        self.shifts: dict[int, int] = {}
        self.freed: list[int] = []
        self._units: dict[int, int] = {}  # action id -> the record's increment for one use
        self.wanted: dict[Hashable, int] = {}
        self.anything_wanted = 0
        self.overwriters = 0
        self._borrowed = False
        self._hints: dict[int, tuple[Hashable, Hashable]] = {}
        self._by_needs: dict[Hashable, dict[int, None]] = {}
        self._relevant: dict[Hashable, dict[int, None]] = {}
        self._by_gives: dict[Hashable, dict[int, None]] = {}

    def copy(self) -> Crashed:
        """Return an independent copy. Shared parts are copied on write."""
        other = Crashed(self.model, self.counted)
        other.counts, other.uncounted = self.counts, self.uncounted
        other.guards, other.compared = self.guards, self.compared
        other.shifts, other.freed, other._units = self.shifts, self.freed, self._units
        other.wanted, other.anything_wanted = self.wanted.copy(), self.anything_wanted
        other.overwriters, other._hints = self.overwriters, self._hints
        other._by_needs, other._relevant = self._by_needs, self._relevant
        other._by_gives = self._by_gives
        self._borrowed = other._borrowed = True
        return other

    def _own(self) -> None:
        if self._borrowed:
            self.counts, self.shifts = self.counts.copy(), self.shifts.copy()
            self.freed, self._hints = self.freed.copy(), self._hints.copy()
            self.uncounted = self.uncounted.copy()
            self._units = self._units.copy()
            self._by_needs = {needs: own.copy() for needs, own in self._by_needs.items()}
            self._relevant = {needs: own.copy() for needs, own in self._relevant.items()}
            self._by_gives = {gives: own.copy() for gives, own in self._by_gives.items()}
            self._borrowed = False

    def add(self, number: int, action: Action) -> None:
        """Add one crashed op with this action, whose wants must have been counted."""
        self._own()
        if number in self.counts:
            self.counts[number] += 1
            return
        self.counts[number] = 1
        if self.counted is not None and action not in self.counted:
            self.uncounted.add(number)
        needs, gives = self.model.needs(action), self.model.gives(action)
        if self.model.wants(action) is ANY_STATE:
            needs = ANY_STATE
        self._hints[number] = needs, gives
        self._by_needs.setdefault(needs, {})[number] = None
        self._by_gives.setdefault(gives, {})[number] = None
        if gives is UNSAID or gives in self.wanted:
            self._relevant.setdefault(needs, {})[number] = None

    def remove(self, number: int) -> None:
        """Forget a class that has no further effect."""
        self._own()
        needs, gives = self._hints.pop(number)
        del self.counts[number]
        self.uncounted.discard(number)
        del self._by_needs[needs][number]
        del self._by_gives[gives][number]
        if not self._by_needs[needs]:
            del self._by_needs[needs]
        if not self._by_gives[gives]:
            del self._by_gives[gives]
        self._relevant.get(needs, {}).pop(number, None)
        if not self._relevant.get(needs, True):
            del self._relevant[needs]

    def withdraw(self, number: int) -> None:
        """Remove one op of this class, used or not: see `without`."""
        self._own()
        self.counts[number] -= 1
        if not self.counts[number]:
            self.remove(number)

    def without(self, number: int, used: int) -> int:
        """Return the record with one use of this class less, if it used any: of equal ops, the
        withdrawn one is the used one."""
        return used - self._units[number] if used >> self.shifts[number] & FULL else used

    def want(self, action: Action) -> None:
        """Count an op that is pending from now on, open or crashed."""
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
        """Discount an op that is no longer pending."""
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
        """Return whether this open op could enable another, or be overwritten by one."""
        if self.anything_wanted or self.overwriters:
            return True
        gives = self.model.gives(action)
        return gives is UNSAID or gives in self.wanted

    def moves(self, facet: Hashable, used: int, idle: bool) -> list[tuple[int, int, int]]:
        """Return the moves of a configuration with this record in a state of this facet, the
        cheapest first; in an idle state, only those with an effect there. Each is (0, action id,
        the record's increment)."""
        index = self._by_needs if self.anything_wanted else self._relevant
        candidates = list(index.get(facet, ())) if facet is not UNSAID else []
        candidates += index.get(UNSAID, ())
        if not idle:
            candidates += index.get(ANY_STATE, ())
        shifts, counts, units = self.shifts, self.counts, self._units
        found, over = [], []
        for number in candidates:
            shift = shifts.get(number)
            if shift is None:
                shift = self._new_field(number)
                shifts, units = self.shifts, self._units
            spent = used >> shift
            if spent & FULL < counts[number]:
                found.append((0, number, units[number]))
            elif number in self.uncounted:
                over.append((0, number, 0 if spent & OVER else (OVER << shift) + FAULT))
        return found + over if over else found

    def unit(self, number: int) -> int:
        """Return the record's increment for one use of the class."""
        if number not in self._units:
            self._new_field(number)
        return self._units[number]

    def _new_field(self, number: int) -> int:
        """Allocate a field for this class in every record; return its position."""
        self._own()
        shift = self.freed.pop() if self.freed else CLASSES + FIELD * len(self.shifts)
        self.shifts[number] = shift
        cost = ANYWHERE if self._hints[number][0] in (UNSAID, ANY_STATE) else SOMEWHERE
        self._units[number] = (1 << shift) + cost
        guard = 1 << (shift + FIELD - 1)
        self.guards |= guard
        if number not in self.uncounted:
            self.compared |= guard
        return shift

    def droppable(self, number: int, records: list[int]) -> bool:
        """Return whether records may forget their use of this class."""
        shift = self.shifts.get(number)
        return shift is None or not any(used >> shift & OVER for used in records)

    def cleared(self, numbers: list[int], used: int) -> int:
        """Return the record without its uses of these classes, which all have a field."""
        for number in numbers:
            used -= (used >> self.shifts[number] & FULL) * self._units[number]
        return used

    def overused(self, used: int) -> list[int]:
        """Return the ids of the actions that this record overuses."""
        return [number for number, shift in self.shifts.items() if used >> shift & OVER]

    def spent(self, records: list[int]) -> tuple[int, list[int]]:
        """Return the use common to all records: (what to subtract from each, the exhausted classes,
        which are forgotten here)."""
        self._own()
        common = 0
        over = []
        for number, shift in list(self.shifts.items()):
            least = min((record >> shift) & FULL for record in records)
            if least:
                common += least * self._units[number]
            if number in self.counts:
                self.counts[number] -= least
                if self.counts[number]:
                    continue
                if number not in self.uncounted:
                    over += [number] * least
                    self.remove(number)
            if all((record >> shift) & (FULL | OVER) == least for record in records):
                del self.shifts[number], self._units[number]
                self.freed.append(shift)
                guard = 1 << (shift + FIELD - 1)
                self.guards &= ~guard
                self.compared &= ~guard
        return common, over
