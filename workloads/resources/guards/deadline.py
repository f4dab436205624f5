"""The client's look at its lease before it writes, which a pause after the look defeats."""

from __future__ import annotations

from fencepost.workloads.contract.guard import Guard

GUARD = Guard(
    "deadline",
    "accepts every write; the client looks at its lease and its clock before it sends one "
    "(not enough: the pause may come after the look)",
    looks_at_clock=True,
)
