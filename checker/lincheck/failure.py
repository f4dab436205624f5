"""Finds the first op, in the order of returns, that cannot be placed.

The search that finds a verdict may stop at another op: horizon.py drops configurations early that
later results rule out, and linearize.py drops or miscounts configurations around crashed ops. All
of these keep the verdict. So this module checks the history up to one return after another, by
bisection. The op to blame is the one with whose return the history stops being linearizable.

In the history up to a return, an op that is still open may happen or not, and its result is the one
it will return, as in the search.
"""

from __future__ import annotations

from fencepost.checker.lincheck.budget import Budget
from fencepost.checker.lincheck.linearize import END, explore_up_to
from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Operation


def first_failure(
    operations: list[Operation],
    model: Model,
    budget: Budget,
    near: Operation | None = None,
) -> Operation | None:
    """Return the op at whose return this object stops being linearizable, or None.

    near: where to look first, if the object is known not to be linearizable. Raises Exhausted.
    """
    if near is None:
        search, near = explore_up_to(operations, END, model, budget)
        if near is None or search.exact:
            return near
    ends = {op.returned: op for op in operations if op.returned is not None}
    order = sorted(ends)

    def fails(index: int) -> bool:
        return explore_up_to(operations, order[index], model, budget)[1] is not None

    low, high = -1, len(order) - 1  # up to `low` it is linearizable, up to `high` it is not
    assert near.returned is not None
    at, step = min(order.index(near.returned), high - 1), 1
    while high - low > 1:
        if not low < at < high:
            at = (low + high) // 2
        if fails(at):
            high, at = at, at - step
        else:
            low, at = at, at + step
        step *= 2
    return ends[order[high]]
