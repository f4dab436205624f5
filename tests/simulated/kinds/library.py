"""Defects of a client's library."""

from __future__ import annotations

from tests.simulated.kinds.kind import GRANTS, LEASE, Kind

KINDS = (
    Kind(
        "checks_then_deletes",
        "a release checks its owner and deletes in two steps",
        ("ownership",),
        may=GRANTS,
        ways=LEASE,
        needs=("between", "busy"),
    ),
    Kind(
        "deadline_from_answer",
        "counts the lease from the answer, not from the call",
        ("lease_exclusion",),
        may=("linearizable",),
        ways=("lease", "quorum"),
        needs=("contended", "slow", "busy"),
    ),
    Kind(
        "true_on_timeout",
        "takes a timeout for a grant",
        GRANTS,
        may=("liveness",),
        ways=LEASE,
        needs=("impatient", "contended"),
    ),
    Kind(
        "false_though_granted",
        "takes a timeout for a refusal",
        ("liveness",),
        ways=LEASE,
        needs=("impatient", "true_refusals", "alone", "calm"),
    ),
    Kind(
        "raises_though_granted",
        "raises an error though it was granted the lock",
        ("liveness",),
        may=("lease_exclusion",),
        ways=LEASE,
        needs=("alone", "single", "calm"),
    ),
    Kind(
        "old_answer",
        "takes the answer of an earlier request for that of this one",
        GRANTS,
        # A release that seems to succeed, next to a hold that seems to end.
        may=("liveness", "fencing", "ownership"),
        ways=LEASE,
        needs=("impatient", "contended"),
    ),
    Kind(
        "frees_all",
        "the release of an inner hold frees the lock",
        GRANTS,
        ways=LEASE,
        needs=("reentrant", "contended"),
    ),
    Kind(
        "never_reconnects",
        "never opens a connection again that was lost",
        ("liveness",),
        ways=LEASE,
        needs=("outage", "asking"),
    ),
)
