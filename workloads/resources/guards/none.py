"""No guard: whether the data is damaged is up to the lock."""

from __future__ import annotations

from fencepost.workloads.contract.guard import ACCEPT, Guard

GUARD = Guard(
    "none",
    "accepts every write: the lock alone protects the data",
    rules=ACCEPT,
)
