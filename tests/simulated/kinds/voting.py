"""Defects of a quorum: of its servers, and of the library that asks them."""

from __future__ import annotations

from tests.simulated.kinds.kind import GRANTS, QUORUM, Kind

KINDS = (
    Kind("minority", "grants with a minority", GRANTS, ways=QUORUM, needs=("contended", "many")),
    Kind(
        "counts_twice",
        "counts one server twice",
        GRANTS,
        ways=QUORUM,
        share=0.5,
        needs=("contended", "many"),
    ),
    Kind(
        "keeps_minority",
        "does not give back what too few servers granted",
        ("liveness",),
        ways=QUORUM,
        needs=("asking", "many", "split", "calm"),
    ),
    Kind(
        "no_validity",
        "hands out a grant whose lease has expired",
        ("lease_exclusion", "mutual_exclusion"),
        ways=QUORUM,
        needs=("patient", "stalls", "contended", "busy"),
    ),
    Kind(
        "server_forgets",
        "servers keep nothing when they stop",
        GRANTS,
        ways=QUORUM,
        needs=("contended", "busy", "restarts"),
    ),
    Kind(
        "clock_jumps",
        "servers count leases by their wall clocks",
        GRANTS,
        # A lease that began on a clock ahead runs until the clock shows its end again.
        may=("liveness",),
        ways=QUORUM,
        needs=("contended", "busy", "clocks"),
    ),
    Kind(
        "no_drift",
        "allows for no drift of the servers' clocks",
        GRANTS,
        ways=QUORUM,
        needs=("contended", "many", "rates"),
    ),
    Kind(
        "retries_own_key",
        "counts its own key of an earlier try as granted now",
        # Counted from its request, the lease that the grant names would have expired.
        ("lease_exclusion",),
        # Clients that keep their keys until they give up refuse one another.
        may=("linearizable", "liveness"),
        ways=QUORUM,
        needs=("contended", "many", "short"),
    ),
)
