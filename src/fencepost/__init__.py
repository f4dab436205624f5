"""fencepost tests distributed locks: real servers, real faults, a verdict from the history alone.

This is the public interface. Names are loaded on first use: the checker needs only the standard
library, and a client on a node needs only the lock.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fencepost import moved

if TYPE_CHECKING:
    from fencepost.checker import lincheck as lincheck
    from fencepost.harness.api.result import Result as Result
    from fencepost.harness.api.result import load as load
    from fencepost.harness.api.session import Session as Session
    from fencepost.harness.api.session import run as run
    from fencepost.workloads.contract.lock import Env as Env
    from fencepost.workloads.contract.lock import Failed as Failed
    from fencepost.workloads.contract.lock import Indeterminate as Indeterminate
    from fencepost.workloads.contract.lock import Lock as Lock
    from fencepost.workloads.locks.plain import Grant as Grant

_NAMES = {
    "fencepost.harness.api.result": "Result load",
    "fencepost.harness.api.session": "Session run",
    "fencepost.workloads.contract.lock": "Env Failed Indeterminate Lock",
    "fencepost.workloads.locks.plain": "Grant",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(["lincheck", *_HOMES])


moved.install()


def __getattr__(name: str) -> Any:
    if name == "lincheck":
        return import_module("fencepost.checker.lincheck")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
