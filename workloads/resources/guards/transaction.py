"""Lock and data in one store, which writes only if the lock's key is still there."""

from __future__ import annotations

from fencepost.workloads.contract.guard import SEQUENCER, Guard

GUARD = Guard(
    "transaction",
    "one etcd transaction: the write, if the lock's key is still there",
    needs=SEQUENCER,
)
