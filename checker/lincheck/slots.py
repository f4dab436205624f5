"""The open ops of one object. Each has a slot, a bit in a configuration's mask.

A slot is reused once its op has returned or crashed, so that masks stay as small as the
concurrency. An op either observes (it never changes anything) or moves.
"""

from __future__ import annotations

from fencepost.checker.lincheck.table import Table


class Slots:
    """ops: op id -> (bit, action's number). movers, observers: bit -> action's number.

    names: slot -> op id, the last op to have it. With `keep` that list is never changed in place,
    so that a path may refer to it.
    """

    def __init__(self, table: Table, keep: bool) -> None:
        self.ops: dict[int, tuple[int, int]] = {}
        self.movers: dict[int, int] = {}
        self.observers: dict[int, int] = {}
        self.names: list[int] = []
        self.fitting: dict[int, int] = {}  # state -> result of `fit`
        self._table = table
        self._keep = keep
        self._free: list[int] = []

    def copy(self) -> Slots:
        """Return an independent copy of the same open ops."""
        other = Slots(self._table, self._keep)
        other.ops = self.ops.copy()
        other.movers = self.movers.copy()
        other.observers = self.observers.copy()
        other.names = self.names.copy()
        other._free = self._free.copy()
        return other

    def open(self, op: int, number: int) -> None:
        """Open op `op`, whose action has this number."""
        if self._free:
            slot = self._free.pop()
            if self._keep:
                self.names = self.names.copy()
            self.names[slot] = op
        else:
            slot = len(self.names)
            self.names = [*self.names, op]
        bit = 1 << slot
        self.ops[op] = bit, number
        if self._table.observing[number]:
            self.observers[bit] = number
            self.fitting.clear()
        else:
            self.movers[bit] = number

    def close(self, op: int) -> None:
        """Close op `op` and free its slot."""
        bit, _ = self.ops.pop(op)
        if self.movers.pop(bit, None) is None:
            del self.observers[bit]
            self.fitting.clear()
        self._free.append(bit.bit_length() - 1)

    def fit(self, state: int) -> int:
        """Return the bits of the open observers that fit this state; memoized in `fitting`."""
        bits = 0
        steps = self._table.steps
        for bit, action in self.observers.items():
            after = steps[action].get(state)
            if after is None:
                after = self._table.step(action, state)
            if after == state:
                bits |= bit
        self.fitting[state] = bits
        return bits
