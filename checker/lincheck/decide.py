"""Decides one object: by a fast path if one applies, else by the general engine."""

from __future__ import annotations

from typing import NamedTuple

from fencepost.checker.lincheck.budget import Budget
from fencepost.checker.lincheck.fastpaths import BY_MODEL
from fencepost.checker.lincheck.linearize import explore
from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Operation


class Failure(NamedTuple):
    """An object is not linearizable. operation: the op at which that was decided, if any; first: it
    is the first op that cannot be placed."""

    operation: Operation | None
    first: bool


def decide(operations: list[Operation], model: Model, budget: Budget, fast: bool) -> Failure | None:
    """Return why this object is not linearizable, or None if it is. Raises Exhausted."""
    if fast and model.name in BY_MODEL:
        quick = BY_MODEL[model.name](operations, model)
        if isinstance(quick, Operation):
            return Failure(quick, True)
        if quick is not None:
            return None if quick else Failure(None, False)
    search, failed = explore(operations, model, budget)
    return None if failed is None else Failure(failed, search.exact)
