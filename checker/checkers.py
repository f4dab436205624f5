"""The registry of checkers, and the verdict of all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.checker import (
    exclusion,
    fencing,
    jobs,
    leadership,
    linearizable,
    liveness,
    ownership,
    receipts,
    resource,
    server_log,
    store,
)
from fencepost.checker.checker import Checker, Run
from fencepost.checker.verdict import Valid, Verdict, worst
from fencepost.registry import Registry

CHECKERS = Registry(
    "fencepost.checkers",
    Checker,
    (
        exclusion.LEASE_EXCLUSION,
        linearizable.CHECKER,
        exclusion.MUTUAL_EXCLUSION,
        leadership.CHECKER,
        jobs.CHECKER,
        fencing.CHECKER,
        ownership.CHECKER,
        liveness.CHECKER,
        store.CHECKER,
        resource.CHECKER,
        server_log.CHECKER,
    ),
)


def check(run: Run, names: Iterable[str]) -> dict[str, Verdict]:
    """Return each named checker's verdict and, under "faults", whether every fault had its
    receipt."""
    verdicts = {"faults": receipts.check(run.history, run.test)}
    verdicts |= {name: _check(name, run) for name in names}
    return verdicts


def _check(name: str, run: Run) -> Verdict:
    try:
        return CHECKERS[name].check(run)
    except MemoryError:
        return Verdict("unknown", "The memory did not suffice to judge this.")


def of_time(name: str) -> bool:
    """Return whether a violation of this checker is that something came too late or never."""
    return name in CHECKERS and CHECKERS[name].of_time


def valid(verdicts: Mapping[str, Verdict]) -> Valid:
    """Return the run's verdict: the worst of all."""
    return worst(verdict.valid for verdict in verdicts.values())


def sound(test: Mapping[str, Any]) -> dict[str, Valid]:
    """Return the verdicts expected of a run of this test in which nothing goes wrong."""
    return {
        name: checker.control
        for name, checker in CHECKERS.items()
        if checker.control is not None and checker.applies(test) is None
    }
