"""Chubby's CheckSequencer: the resource asks the lock service (workloads/resources/server.py)."""

from __future__ import annotations

from fencepost.workloads.contract.guard import SEQUENCER, Guard

GUARD = Guard(
    "check-sequencer",
    "asks the lock service with each write whether its hold is still there",
    needs=SEQUENCER,
)
