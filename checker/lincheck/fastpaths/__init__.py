"""Special cases that are decided exactly, without a search.

A fast path takes the operations of one object and answers True, False (or, if it knows it, the
first operation that cannot be placed), or None where its conditions are not met; then the
general engine decides. Each is held to the engine by property tests.
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
