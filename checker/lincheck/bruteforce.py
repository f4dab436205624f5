"""Searches all orders of some operations for one that the model accepts. Naive on purpose.

A counterexample is shown only after every order of it was tried here. Like the verifier, this
shares nothing with the search: no hints of the model, no pruning, no order of preference. It tries
every way to place one op after another, and only remembers where it has been.
"""

from __future__ import annotations

from fencepost.checker.lincheck.model import Inconsistent, Model
from fencepost.checker.lincheck.operation import Operation
from fencepost.checker.lincheck.verifier import Moments

MOST_STEPS = 200_000  # tried before it gives up: some tenths of a second


def any_order(operations: list[Operation], model: Model, most: int = MOST_STEPS) -> bool | None:
    """Return whether a linearization exists, or None if that would take more than `most` steps."""
    steps = [(op.action, op.id, op.returned) for op in operations]
    moments = Moments(operations, model)
    steps += [(action, at, None) for action, at in moments.timed]
    must = sum(1 << i for i, (_, _, end) in enumerate(steps) if end is not None)
    todo = [(0, model.initial)]
    seen = set(todo)
    tried = 0
    while todo:
        placed, state = todo.pop()
        if not must & ~placed:
            return True
        left = [(1 << i, *step) for i, step in enumerate(steps) if not placed >> i & 1]
        tried += len(left)
        if tried > most:
            return None
        first_end = min(end for _, _, _, end in left if end is not None)
        for bit, action, begin, _ in left:
            if begin > first_end:
                continue  # an op not placed yet had returned before
            after = model.step(state, action)
            if isinstance(after, Inconsistent) or (placed | bit, after) in seen:
                continue
            seen.add((placed | bit, after))
            todo.append((placed | bit, after))
    return False
