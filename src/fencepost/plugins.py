"""What authors of plug-ins import: the bundles, and the types that bundles are made of.

The module that defines a name may move from one version to the next; the name here stays. Nothing
is loaded before it is used. A node imports this file as well, with the rest of its package missing,
so it needs the standard library alone.

An elector is a `LockType` with `elector=True`, whose `make` wraps the elector in an `ElectorLock`.
`Grant` is the one that a `Lock` returns; a user lock (docs/your-lock.md) returns `fencepost.Grant`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fencepost.checker.checker import Checker as Checker
    from fencepost.checker.checker import Run as Run
    from fencepost.checker.checker import of_history as of_history
    from fencepost.checker.history.history import History as History
    from fencepost.checker.history.op import Call as Call
    from fencepost.checker.history.op import Op as Op
    from fencepost.checker.lincheck.model import Model as Model
    from fencepost.checker.verdict import Verdict as Verdict
    from fencepost.hunt.faults.simulated import Action as Action
    from fencepost.hunt.faults.simulated import Simulated as Simulated
    from fencepost.hunt.models import model as _model
    from fencepost.hunt.models.model import Storage as Storage
    from fencepost.hunt.sim.network import Network as Network
    from fencepost.hunt.sim.network import Server as Server
    from fencepost.hunt.sim.setting import Setting as Setting
    from fencepost.hunt.sim.unknown import Unknown as Unknown
    from fencepost.nemesis.aiming import Aimed as Aimed
    from fencepost.nemesis.aiming import Aiming as Aiming
    from fencepost.nemesis.aiming import Points as Points
    from fencepost.nemesis.axis import FaultAxis as FaultAxis
    from fencepost.nemesis.family import Closing as Closing
    from fencepost.nemesis.family import Colour as Colour
    from fencepost.nemesis.family import Column as Column
    from fencepost.nemesis.family import Family as Family
    from fencepost.nemesis.family import MachineNeed as MachineNeed
    from fencepost.nemesis.fault_spec import Asked as Asked
    from fencepost.nemesis.nemesis import Fault as Fault
    from fencepost.nemesis.nemesis import Leftover as Leftover
    from fencepost.nemesis.nemesis import Nemesis as Nemesis
    from fencepost.nemesis.nemesis import Receipt as Receipt
    from fencepost.nemesis.site import Site as Site
    from fencepost.nemesis.targets import Drawn as Drawn
    from fencepost.nemesis.targets import Layout as Layout
    from fencepost.nemesis.targets import pick as pick
    from fencepost.nemesis.turns import deal as deal
    from fencepost.node.kind import Clock as Clock
    from fencepost.node.kind import Image as Image
    from fencepost.node.kind import Kind as Kind
    from fencepost.node.kind import Start as Start
    from fencepost.node.watch import Watch as Watch
    from fencepost.workloads.contract.guard import Guard as Guard
    from fencepost.workloads.contract.guard import Rule as Rule
    from fencepost.workloads.contract.lock import Env as Env
    from fencepost.workloads.contract.lock import Failed as Failed
    from fencepost.workloads.contract.lock import Grant as Grant
    from fencepost.workloads.contract.lock import Indeterminate as Indeterminate
    from fencepost.workloads.contract.lock import Link as Link
    from fencepost.workloads.contract.lock import Lock as Lock
    from fencepost.workloads.contract.lock import SharedLock as SharedLock
    from fencepost.workloads.contract.locktype import LockType as LockType
    from fencepost.workloads.contract.locktype import Reference as Reference
    from fencepost.workloads.contract.option import Option as Option
    from fencepost.workloads.contract.resource import Resource as Resource
    from fencepost.workloads.contract.store import Opening as Opening
    from fencepost.workloads.contract.store import Store as Store
    from fencepost.workloads.electors.plain import ElectorLock as ElectorLock
    from fencepost.workloads.scenarios.claim import Claim as Claim
    from fencepost.workloads.scenarios.scenario import Scenario as Scenario
    from fencepost.workloads.scenarios.suite import Cost as Cost
    from fencepost.workloads.scenarios.suite import Rate as Rate
    from fencepost.workloads.scenarios.suite import Suite as Suite
    from fencepost.workloads.scenarios.suite import TimedRun as TimedRun
    from fencepost.workloads.transport.deferred import Deferred as Deferred
    from fencepost.workloads.transport.deferred import load as load

    ServerModel = _model.Model

_NAMES = {
    "fencepost.checker.checker": "Checker Run of_history",
    "fencepost.checker.history.history": "History",
    "fencepost.checker.history.op": "Call Op",
    "fencepost.checker.lincheck.model": "Model",
    "fencepost.checker.verdict": "Verdict",
    "fencepost.hunt.faults.simulated": "Action Simulated",
    "fencepost.hunt.models.model": "ServerModel Storage",
    "fencepost.hunt.sim.network": "Network Server",
    "fencepost.hunt.sim.setting": "Setting",
    "fencepost.hunt.sim.unknown": "Unknown",
    "fencepost.nemesis.aiming": "Aimed Aiming Points",
    "fencepost.nemesis.axis": "FaultAxis",
    "fencepost.nemesis.family": "Closing Colour Column Family MachineNeed",
    "fencepost.nemesis.fault_spec": "Asked",
    "fencepost.nemesis.nemesis": "Fault Leftover Nemesis Receipt",
    "fencepost.nemesis.site": "Site",
    "fencepost.nemesis.targets": "Drawn Layout pick",
    "fencepost.nemesis.turns": "deal",
    "fencepost.node.kind": "Clock Image Kind Start",
    "fencepost.node.watch": "Watch",
    "fencepost.workloads.contract.guard": "Guard Rule",
    "fencepost.workloads.contract.lock": "Env Failed Grant Indeterminate Link Lock SharedLock",
    "fencepost.workloads.contract.locktype": "LockType Reference",
    "fencepost.workloads.contract.option": "Option",
    "fencepost.workloads.contract.resource": "Resource",
    "fencepost.workloads.contract.store": "Opening Store",
    "fencepost.workloads.electors.plain": "ElectorLock",
    "fencepost.workloads.scenarios.claim": "Claim",
    "fencepost.workloads.scenarios.scenario": "Scenario",
    "fencepost.workloads.scenarios.suite": "Cost Rate Suite TimedRun",
    "fencepost.workloads.transport.deferred": "Deferred load",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
_THERE = {"ServerModel": "Model"}
"""Names that differ from those in their modules: `Model` is one of lincheck."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), _THERE.get(name, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
