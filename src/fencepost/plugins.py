"""What authors of plug-ins import: the bundles, and the types that bundles are made of.

The module that defines a name may move from one version to the next; the name here stays. Nothing
is loaded before it is used. A node imports this file as well, with the rest of its package missing,
so it needs the standard library alone.

`Grant` is the one that a `Lock` returns; a user lock (docs/your-lock.md) returns `fencepost.Grant`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fencepost.checker.checker import Checker, Run, of_history
    from fencepost.checker.history.history import History
    from fencepost.checker.history.op import Call, Op
    from fencepost.checker.lincheck.model import Model
    from fencepost.checker.verdict import Verdict
    from fencepost.hunt.faults.simulated import Action, Simulated
    from fencepost.nemesis.axis import FaultAxis
    from fencepost.nemesis.family import Colour, Column, Family
    from fencepost.nemesis.fault_spec import Asked
    from fencepost.nemesis.nemesis import Fault, Leftover, Nemesis, Receipt
    from fencepost.nemesis.site import Site
    from fencepost.nemesis.targets import Drawn, Layout, pick
    from fencepost.node.kind import Clock, Image, Kind, Start
    from fencepost.node.watch import Watch
    from fencepost.workloads.contract.guard import Guard, Rule
    from fencepost.workloads.contract.lock import (
        Env,
        Failed,
        Grant,
        Indeterminate,
        Link,
        Lock,
        SharedLock,
    )
    from fencepost.workloads.contract.locktype import LockType
    from fencepost.workloads.contract.option import Option
    from fencepost.workloads.contract.resource import Resource
    from fencepost.workloads.contract.store import Opening, Store
    from fencepost.workloads.scenarios.claim import Claim
    from fencepost.workloads.scenarios.scenario import Scenario
    from fencepost.workloads.scenarios.suite import Cost, Rate, Suite, TimedRun
    from fencepost.workloads.transport.deferred import Deferred, load

_NAMES = {
    "fencepost.checker.checker": "Checker Run of_history",
    "fencepost.checker.history.history": "History",
    "fencepost.checker.history.op": "Call Op",
    "fencepost.checker.lincheck.model": "Model",
    "fencepost.checker.verdict": "Verdict",
    "fencepost.hunt.faults.simulated": "Action Simulated",
    "fencepost.nemesis.axis": "FaultAxis",
    "fencepost.nemesis.family": "Colour Column Family",
    "fencepost.nemesis.fault_spec": "Asked",
    "fencepost.nemesis.nemesis": "Fault Leftover Nemesis Receipt",
    "fencepost.nemesis.site": "Site",
    "fencepost.nemesis.targets": "Drawn Layout pick",
    "fencepost.node.kind": "Clock Image Kind Start",
    "fencepost.node.watch": "Watch",
    "fencepost.workloads.contract.guard": "Guard Rule",
    "fencepost.workloads.contract.lock": "Env Failed Grant Indeterminate Link Lock SharedLock",
    "fencepost.workloads.contract.locktype": "LockType",
    "fencepost.workloads.contract.option": "Option",
    "fencepost.workloads.contract.resource": "Resource",
    "fencepost.workloads.contract.store": "Opening Store",
    "fencepost.workloads.scenarios.claim": "Claim",
    "fencepost.workloads.scenarios.scenario": "Scenario",
    "fencepost.workloads.scenarios.suite": "Cost Rate Suite TimedRun",
    "fencepost.workloads.transport.deferred": "Deferred load",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Action",
    "Asked",
    "Call",
    "Checker",
    "Claim",
    "Clock",
    "Colour",
    "Column",
    "Cost",
    "Deferred",
    "Drawn",
    "Env",
    "Failed",
    "Family",
    "Fault",
    "FaultAxis",
    "Grant",
    "Guard",
    "History",
    "Image",
    "Indeterminate",
    "Kind",
    "Layout",
    "Leftover",
    "Link",
    "Lock",
    "LockType",
    "Model",
    "Nemesis",
    "Op",
    "Opening",
    "Option",
    "Rate",
    "Receipt",
    "Resource",
    "Rule",
    "Run",
    "Scenario",
    "SharedLock",
    "Simulated",
    "Site",
    "Start",
    "Store",
    "Suite",
    "TimedRun",
    "Verdict",
    "Watch",
    "load",
    "of_history",
    "pick",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
