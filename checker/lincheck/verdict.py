"""Checks a history against a model.

Independent objects are decided one by one; each by a fast path if one applies, else by the general
engine; and by several processes once the check proves long. The first object that fails decides the
history.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fencepost.checker.lincheck.budget import Budget, Exhausted
from fencepost.checker.lincheck.decide import Failure, decide
from fencepost.checker.lincheck.evidence import Evidence, evidence_for
from fencepost.checker.lincheck.history import Call, calls
from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.models import named
from fencepost.checker.lincheck.operation import Objects, Operation, sorted_out
from fencepost.checker.lincheck.processes import in_processes

SPREAD_AFTER_S = 0.5  # below this, starting processes costs more than it saves


@dataclass(frozen=True)
class Verdict:
    """`valid` is True, False or "unknown"; never treat unknown as either.

    operations: the number of ops of the model. seconds: the duration of the check. reason: why it
    is unknown. key: the object that failed (None where there is only one). failed: the first op
    that could not be placed, if known already; `evidence` finds it. near: else an op where the
    search stopped, perhaps another.
    """

    valid: bool | Literal["unknown"]
    model: Model
    operations: int
    seconds: float
    reason: str | None = None
    key: Hashable = None
    failed: Operation | None = None
    near: Operation | None = None
    parts: dict[Hashable, list[Operation]] = field(default_factory=dict, repr=False)

    def evidence(self, time_limit: float = 5.0, memory_limit: float | None = None) -> Evidence:
        """Return the evidence for the verdict. Takes up to `time_limit` s, and is incomplete if
        that does not suffice. See Evidence."""
        budget = Budget.starting_now(time_limit, memory_limit)
        return evidence_for(
            self.valid, self.parts, self.key, self.failed, self.near, self.model, budget
        )


def check(
    history: Iterable[Mapping[str, Any]],
    model: Model | str,
    *,
    init: Any = None,
    failed_release: str = "nothing",
    time_limit: float | None = None,
    memory_limit: float | None = None,
    partition: bool = True,
    fast: bool = True,
) -> Verdict:
    """Check whether the history is linearizable with respect to the model.

    history: events in order, mappings with process, type, f, value and (ns) time, as in fencepost's
    history.jsonl; any iterable, read once. model: a Model, or the name of one, which then starts
    from `init` and reads failed releases as `failed_release` says (see `named`). time_limit in s,
    memory_limit in MB of growth: beyond either the verdict is "unknown". partition=False takes the
    history as one object even if the model could divide it; fast=False leaves everything to the
    general engine.

    Raises BadHistory (with `line`, the position in the history from 1) for malformed input,
    BadValue for an unknown model or an invalid init.
    """
    numbered = enumerate(history, 1)
    if isinstance(model, str):
        model = named(model, init, failed_release)
    return check_numbered(
        numbered,
        model,
        Budget.starting_now(time_limit, memory_limit),
        partition=partition,
        fast=fast,
    )


def check_numbered(
    numbered: Iterable[tuple[int, Mapping[str, Any]]],
    model: Model,
    budget: Budget,
    *,
    partition: bool = True,
    fast: bool = True,
) -> Verdict:
    """Do the same as `check` for (line, event) pairs, as the readers in formats yield them."""
    return check_calls(
        calls(_limited(numbered, budget)), model, budget, partition=partition, fast=fast
    )


def check_calls(
    history: Iterable[Call],
    model: Model,
    budget: Budget,
    *,
    partition: bool = True,
    fast: bool = True,
) -> Verdict:
    """Do the same as `check` for calls in the order of their completion."""
    started = time.perf_counter()

    def verdict(
        valid: bool | Literal["unknown"],
        found: Objects,
        reason: str | None = None,
        key: Hashable = None,
        failure: Failure | None = None,
    ) -> Verdict:
        seconds = time.perf_counter() - started
        at = None if failure is None else failure.operation
        failed, near = (at, None) if failure is not None and failure.first else (None, at)
        return Verdict(
            valid, model, found.operations, seconds, reason, key, failed, near, found.parts
        )

    found = Objects({}, 0)
    try:
        found = sorted_out(history, model, partition=partition)
        if not partition:
            fast = False
        waiting, begun = list(found.parts), time.perf_counter()
        while waiting:
            if len(waiting) > 1 and time.perf_counter() - begun > SPREAD_AFTER_S:
                spread = in_processes(found.parts, waiting, model, budget, fast)
                if spread is not None:
                    failing, failure = spread
                    if failing is not None:
                        return verdict(False, found, key=failing[0], failure=failure)
                    break
            key = waiting.pop(0)
            failure = decide(found.parts[key], model, budget, fast)
            if failure is not None:
                return verdict(False, found, key=key, failure=failure)
    except Exhausted as limit:
        return verdict("unknown", found, limit.reason)
    except MemoryError:
        return verdict("unknown", found, "out of memory")
    return verdict(True, found)


def _limited(
    numbered: Iterable[tuple[int, Mapping[str, Any]]], budget: Budget
) -> Iterable[tuple[int, Mapping[str, Any]]]:
    if budget.deadline is None and budget.ceiling is None:
        return numbered
    return _metered(numbered, budget)


def _metered(
    numbered: Iterable[tuple[int, Mapping[str, Any]]], budget: Budget
) -> Iterable[tuple[int, Mapping[str, Any]]]:
    for count, pair in enumerate(numbered):
        if not count & 1023:
            budget.spend(f"after reading {count} events")
        yield pair
