"""All models by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fencepost.checker.lincheck.model import BadValue, Model
from fencepost.checker.lincheck.models.collection import (
    counter,
    fifo_queue,
    set_model,
    unordered_queue,
)
from fencepost.checker.lincheck.models.independent import independent
from fencepost.checker.lincheck.models.keyed import kv, multi_register
from fencepost.checker.lincheck.models.lease import lease_mutex
from fencepost.checker.lincheck.models.lock import (
    FAILED_RELEASE,
    fenced_mutex,
    mutex,
    owner_mutex,
    reentrant_mutex,
)
from fencepost.checker.lincheck.models.register import cas_register, register
from fencepost.checker.lincheck.models.shared import rw_lock, semaphore

DATA: Final[dict[str, Callable[[Any], Model]]] = {
    "register": register,
    "cas-register": cas_register,
    "multi-register": multi_register,
    "kv": kv,
    "set": set_model,
    "counter": counter,
    "fifo-queue": fifo_queue,
    "unordered-queue": unordered_queue,
}
LOCKS: Final[dict[str, Callable[[Any, str], Model]]] = {
    "mutex": mutex,
    "owner-mutex": owner_mutex,
    "reentrant-mutex": reentrant_mutex,
    "semaphore": semaphore,
    "rw-lock": rw_lock,
    "fenced-mutex": fenced_mutex,
    "lease-mutex": lease_mutex,
}
NAMES: Final = (*DATA, *LOCKS)
KEYED: Final = tuple(name for name in DATA if name not in ("kv", "multi-register"))
"""The models that --keyed multiplies; the values of the others name their keys already."""


def named(
    name: str, init: Any = None, failed_release: str = "nothing", keyed: bool = False
) -> Model:
    """Return the model of this name, started with `init` (a JSON value; null is the model's
    default).

    `failed_release` is `nothing` or `ended` and matters to locks only. `keyed`: each value is
    [key, value], and each key is an object of its own (jepsen.independent). Raises BadValue for an
    unknown name or an invalid start.
    """
    if keyed:
        if name not in KEYED:
            raise BadValue(f"--keyed is for {', '.join(KEYED)}, not for {name}")
        return independent(named(name, init))
    if failed_release not in FAILED_RELEASE:
        raise BadValue(f"failed_release must be nothing or ended, not {failed_release!r}")
    if name in LOCKS:
        return LOCKS[name](init, failed_release)
    if name in DATA:
        return DATA[name](init)
    raise BadValue(f"unknown model {name!r}; choose one of {', '.join(NAMES)}")
