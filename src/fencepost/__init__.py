"""fencepost tests distributed locks: real servers, real faults, a verdict from the history alone.

This is the public interface. Names are loaded on first use: the checker needs only the standard
library, and a client on a node needs only the lock.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fencepost import moved

if TYPE_CHECKING:
    from fencepost.checker import lincheck
    from fencepost.harness.api.api import run
    from fencepost.harness.api.result import Result, load
    from fencepost.harness.api.session import Session
    from fencepost.workloads.contract.lock import Env, Failed, Indeterminate, Lock
    from fencepost.workloads.locks.plain import Grant

__all__ = [
    "Env",
    "Failed",
    "Grant",
    "Indeterminate",
    "Lock",
    "Result",
    "Session",
    "lincheck",
    "load",
    "run",
]

_LOCK = "fencepost.workloads.contract.lock"
_HOMES = {
    "Env": _LOCK,
    "Failed": _LOCK,
    "Grant": "fencepost.workloads.locks.plain",
    "Indeterminate": _LOCK,
    "Lock": _LOCK,
    "Result": "fencepost.harness.api.result",
    "Session": "fencepost.harness.api.session",
    "load": "fencepost.harness.api.result",
    "run": "fencepost.harness.api.api",
}


moved.install()


def __getattr__(name: str) -> Any:
    if name == "lincheck":
        return import_module("fencepost.checker.lincheck")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
