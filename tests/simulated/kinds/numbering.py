"""Defects of the tokens."""

from __future__ import annotations

from tests.simulated.kinds.kind import LEASE, Kind

_TOKENS = ("fencing", "linearizable")
# Tokens decide which client came later, and so which write is stale.

KINDS = (
    Kind(
        "repeats_token",
        "gives a token again, or a lower one",
        _TOKENS,
        may=("resource",),
        share=0.3,
        needs=("tokens",),
    ),
    Kind("random_token", "draws tokens at random", _TOKENS, may=("resource",), needs=("tokens",)),
    Kind("constant_token", "gives one token", _TOKENS, may=("resource",), needs=("tokens",)),
    Kind(
        "clock_token",
        "takes its wall clock for a token",
        _TOKENS,
        may=("resource",),
        needs=("tokens", "clocks"),
    ),
    Kind(
        "early_token",
        "a client draws its token before it has the lock",
        ("linearizable",),
        may=("fencing", "resource"),
        ways=LEASE,
        needs=("tokens", "contended"),
    ),
)
