"""Evidence for a verdict, for a person or another program to check.

For true: a linearization of every object, which `verifier.verify` accepts. For false: the op that
cannot be placed, the longest partial linearizations with their states and why each op that could
come next does not fit, and a small sub-history that is still not linearizable. The sub-history is
shown only after two independent checks have refused it: the search without any pruning, and
`bruteforce.any_order`, which tries every order and shares no code with the search.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from fencepost.checker.lincheck.bruteforce import any_order
from fencepost.checker.lincheck.budget import Budget, Exhausted
from fencepost.checker.lincheck.failure import first_failure
from fencepost.checker.lincheck.history import UNKNOWN
from fencepost.checker.lincheck.linearize import explore
from fencepost.checker.lincheck.model import Action, Model, shown
from fencepost.checker.lincheck.operation import Operation
from fencepost.checker.lincheck.partials import Partial, Partials, partials, steps_of
from fencepost.checker.lincheck.shrink import Small, shrink
from fencepost.checker.lincheck.verifier import Step, verify

LAST_S = 1.0  # to check a sub-history if finding it took all the time
MOST_SMALL = 300  # largest sub-history shown, in ops
OBSERVING = ("read", "dequeue")  # fields in which null has a meaning


@dataclass(frozen=True)
class Evidence:
    """valid: the verdict. linearizations: for true, the steps of every object by its key.

    For false: key, the object that fails; failed, the first op in the order of returns that cannot
    be placed (None if the time did not suffice); partials, the longest first (of the sub-history
    only, if the time did not suffice for more); configurations, how many there were in all; small,
    the sub-history, None if none was found or passed the check. complete: False if a limit cut any
    of this short, or left it unchecked; `reason` says which.
    """

    valid: bool | Literal["unknown"]
    linearizations: dict[Hashable, tuple[Step, ...]]
    key: Hashable = None
    failed: Operation | None = None
    partials: tuple[Partial, ...] = ()
    configurations: int = 0
    small: Small | None = None
    complete: bool = True
    reason: str | None = None

    @property
    def why(self) -> str | None:
        """Return why the failed op does not fit the longest partial linearization."""
        for partial in self.partials[:1]:
            for blocked in partial.blocked:
                if blocked.operation == self.failed:
                    return blocked.why
        return None


def evidence_for(
    valid: bool | Literal["unknown"],
    parts: dict[Hashable, list[Operation]],
    key: Hashable,
    failed: Operation | None,
    near: Operation | None,
    model: Model,
    budget: Budget,
) -> Evidence:
    """Return the evidence for a verdict on these objects. `key` failed: at the op `failed` if that
    is known, else probably not far from `near`. Never raises Exhausted.

    Raises AssertionError if a verdict of true cannot be verified, or the search without pruning
    contradicts one of false: that is a defect of lincheck.
    """
    if valid == "unknown":
        return Evidence(valid, {}, complete=False, reason="nothing is known")
    if valid:
        return _for_true(parts, model, budget)
    operations = parts[key]
    try:
        failed = failed or first_failure(operations, model, budget, near)
    except Exhausted as limit:
        return Evidence(False, {}, key, complete=False, reason=limit.reason)
    assert failed is not None, "the engine does not confirm the verdict"
    return _for_false(operations, failed, key, model, budget)


def _for_true(parts: dict[Hashable, list[Operation]], model: Model, budget: Budget) -> Evidence:
    linearizations = {}
    try:
        for key, operations in parts.items():
            search, failed = explore(operations, model, budget, trace=True)
            assert failed is None, f"the engine does not confirm the verdict: {failed}"
            (_, path), *_ = next(iter(search.configurations.values()))
            steps = tuple(steps_of(path, operations))
            wrong = verify(operations, steps, model)
            assert wrong is None, f"the linearization found is wrong: {wrong}"
            linearizations[key] = steps
    except Exhausted as limit:
        return Evidence(True, linearizations, complete=False, reason=limit.reason)
    return Evidence(True, linearizations)


def _for_false(
    operations: list[Operation], failed: Operation, key: Hashable, model: Model, budget: Budget
) -> Evidence:
    """Collect evidence for false; the sub-history comes first, because it is small and quick."""
    reasons = []
    small = shrink(operations, failed, model, budget)
    own = Partials(None)
    if small is None:
        reasons.append("the time did not suffice to find a sub-history")
    else:
        own, doubt = _checked(small, failed, model, budget)
        if doubt is not None:
            reasons.append(doubt)
        elif not small.minimal:
            reasons.append("the sub-history could be smaller: a limit was reached")
        if own.failed is None:
            small = None
    try:
        found = partials(operations, model, budget)
        assert found.failed == failed, "the engine does not confirm the op that failed"
    except Exhausted as limit:
        reasons.insert(0, limit.reason)
        found = own if small is not None else Partials(None)
    return Evidence(
        False,
        {},
        key,
        failed,
        found.longest,
        found.configurations,
        small,
        not reasons,
        "; ".join(reasons) or None,
    )


def _checked(
    small: Small, failed: Operation, model: Model, budget: Budget
) -> tuple[Partials, str | None]:
    """Return the check of the sub-history without any pruning; without a failed op if it must not
    be shown. And the doubts, if any."""
    operations = list(small.operations)
    if len(operations) > MOST_SMALL:
        return Partials(None), f"the smallest sub-history found has {len(operations)} ops: too many"
    left = budget.left()
    if left is not None and left < LAST_S:
        budget = Budget.starting_now(LAST_S)
    try:
        found = partials(operations, model, budget)
    except Exhausted:
        return Partials(None), "the time did not suffice to check the sub-history"
    possible = any_order(operations, model)
    if found.failed is None or possible:
        return Partials(None), "the sub-history found is linearizable, and is not shown"
    without = any_order([op for op in operations if op != failed], model)
    if found.failed != failed or without is False:
        return Partials(None), "the sub-history found fails for another reason, and is not shown"
    if possible is None or without is None:
        return found, "the sub-history has too many orders to try them all"
    return found, None


def described(action: Action) -> str:
    """Describe an op in one short line."""
    line = action.f if action.value is None else f"{action.f} {shown(action.value)}"
    if action.result is UNKNOWN or (action.result is None and action.f not in OBSERVING):
        return line
    return f"{line} -> {shown(action.result)}"
