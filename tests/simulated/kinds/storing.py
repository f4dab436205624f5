"""Defects of the store, and of the guard of its resource."""

from __future__ import annotations

from tests.simulated.kinds.kind import Kind

KINDS = (
    Kind(
        "accepts_stale",
        "the resource accepts a token below the highest",
        ("fencing", "resource"),
        ways=("lease", "close"),
        needs=("tokens", "fenced", "late", "busy"),
    ),
    Kind(
        "loses_update",
        "the store forgets a write that it acknowledged",
        ("store", "resource"),
        # Versions that are given twice turn the order of writes round.
        may=("fencing",),
        share=0.25,
    ),
    Kind(
        "shows_refused",
        "the store refuses a write and applies it",
        ("store",),
        # The refused write took effect, on top of data that its guard protects.
        may=("resource", "fencing"),
        ways=("lease", "close"),
        share=0.8,
        needs=("refuses", "late"),
    ),
)
