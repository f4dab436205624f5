"""The client checks its lease before it writes, which a pause after the check defeats."""

from __future__ import annotations

from fencepost.workloads.contract.guard import ACCEPT, Guard

GUARD = Guard(
    "deadline",
    "accepts every write; the client checks its lease and its clock before it sends one (not "
    "enough: the pause may come after the check)",
    rules=ACCEPT,
    looks_at_clock=True,
)
