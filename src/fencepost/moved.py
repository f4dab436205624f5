"""Modules by their names of version 0.1.0, for plug-ins that were written for it.

`fencepost.plugins` has what plug-ins need under names that stay. This file goes with the next
version. An old name imports the module of today, so that both names have the same classes, and
writes one line that says the new name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

_NOW = {
    "checker.op": "checker.history.op",
    "checker.clocks": "checker.facts.clocks",
    "checker.faults": "checker.facts.faults",
    "checker.holds": "checker.facts.holds",
    "compose.node": "node",
    "harness.db": "harness.servers",
    "nemesis.asked": "nemesis.fault_spec",
    "report.frames": "report.exports.frames",
    "workloads.deferred": "workloads.transport.deferred",
    "workloads.dialled": "workloads.transport.request_link",
    "workloads.etcd_gateway": "workloads.transport.etcd_gateway",
    "workloads.locks.lock": "workloads.contract.lock",
    "workloads.locks.locktype": "workloads.contract.locktype",
    "workloads.locks.option": "workloads.contract.option",
    "workloads.redis_link": "workloads.transport.redis_link",
    "workloads.resources.guards.guard": "workloads.contract.guard",
    "workloads.resources.resource": "workloads.contract.resource",
    "workloads.resources.store": "workloads.contract.store",
}
"""A module or package of 0.1.0, and what it is now; modules below a package move with it."""


def today(name: str) -> str | None:
    """Return the full name that a module has now, or None if its name has not changed."""
    inner = name.removeprefix("fencepost.")
    for old, new in _NOW.items():
        if inner == old or inner.startswith(f"{old}."):
            return f"fencepost.{new}{inner[len(old) :]}"
    return None


_warned: set[str] = set()


def warn(old: str, new: str) -> None:
    """Write one line to standard error, once, that names the new place of something that moved."""
    if old in _warned:
        return
    _warned.add(old)
    print(f"fencepost: {old} is now {new}; fencepost.plugins has what plug-ins need",
          file=sys.stderr)  # fmt: skip


class OldNames:
    """Finds a module by its old name, and gives the module that has the new one.

    A finder and a loader in one, without importlib.abc, which nodes would load for each command.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not (name.startswith("fencepost.") and today(name)):
            return None
        return ModuleSpec(name, self)  # type: ignore[arg-type]  # duck-typed: see above

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = today(spec.name)
        assert new is not None
        module = import_module(new)
        # One line for a package, not one for each module in it.
        if spec.parent not in _warned:
            warn(spec.name, new)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The module has been executed under its new name; the import system gave it the old spec.
        module.__spec__ = self._spec


def install() -> None:
    """Let modules be imported by their old names, ahead of the finders that look for files."""
    sys.meta_path.insert(0, OldNames())
