"""Special cases that are decided exactly, without a search.

A fast path takes the operations of one object and returns True, False (or the first operation that
cannot be placed, if known), or None if its conditions are not met; then the general engine decides.
Property tests compare each with the engine.
"""

from __future__ import annotations

from collections.abc import Callable

from fencepost.checker.lincheck.fastpaths.holds import disjoint_holds
from fencepost.checker.lincheck.fastpaths.leases import latest_order
from fencepost.checker.lincheck.fastpaths.levels import rising_reads
from fencepost.checker.lincheck.fastpaths.order import dequeued_in_order
from fencepost.checker.lincheck.fastpaths.zones import unique_writes
from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Operation

FastPath = Callable[[list[Operation], Model], bool | Operation | None]

BY_MODEL: dict[str, FastPath] = {
    "owner-mutex": disjoint_holds,
    "register": unique_writes,
    "set": rising_reads,
    "fifo-queue": dequeued_in_order,
    "lease-mutex": latest_order,
}
