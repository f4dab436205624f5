"""Every checker by its name, and the verdict of all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.checker import faults
from fencepost.checker.exclusion import lease_exclusion, mutual_exclusion
from fencepost.checker.fencing import fencing
from fencepost.checker.history import History
from fencepost.checker.linearizable import linearizable
from fencepost.checker.liveness import liveness
from fencepost.checker.ownership import ownership
from fencepost.checker.resource import resource
from fencepost.checker.store import store
from fencepost.checker.verdict import Checker, Valid, Verdict, worst

CHECKERS: dict[str, Checker] = {
    "lease_exclusion": lease_exclusion,
    "linearizable": linearizable,
    "mutual_exclusion": mutual_exclusion,
    "fencing": fencing,
    "ownership": ownership,
    "liveness": liveness,
    "store": store,
    "resource": resource,
}


def check(history: History, test: Mapping[str, Any], names: Iterable[str]) -> dict[str, Verdict]:
    """Each named checker's verdict, and under "faults" whether every fault had its receipt."""
    verdicts = {"faults": faults.check(history, test)}
    verdicts |= {name: CHECKERS[name](history, test) for name in names}
    return verdicts


def valid(verdicts: Mapping[str, Verdict]) -> Valid:
    """The run's verdict: the worst of all."""
    return worst(verdict.valid for verdict in verdicts.values())
