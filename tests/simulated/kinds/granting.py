"""Defects of the service that grants, keeps and frees locks."""

from __future__ import annotations

from tests.simulated.kinds.kind import GRANTS, LEASE, QUEUES, Kind

KINDS = (
    # A client that is admitted early overtakes waiting clients, and may get the token of shared
    # holds.
    Kind(
        "grants_early",
        "grants a lock whose lease still runs",
        GRANTS,
        may=("liveness", "fencing"),
        share=0.15,
    ),
    Kind("forgets", "forgets who holds a lock", GRANTS, share=0.7),
    Kind(
        "mixes_modes",
        "grants an exclusive hold beside shared ones, or the other way round",
        ("lease_exclusion",),
        # A hold that joins shared ones gets their token, though an exclusive one came between; and
        # it is admitted before waiting clients.
        may=("fencing", "liveness"),
        share=0.6,
        needs=("shared",),
    ),
    Kind(
        "extends_lost",
        "answers ok to the extension of a hold that is over",
        GRANTS,
        # A hold that was lost and extended again keeps others waiting.
        may=("liveness",),
        ways=("lease", "close"),
        share=0.9,
        needs=("late", "busy", "renewed"),
    ),
    Kind(
        "extends_unchecked",
        "extends the lease of whoever holds the lock",
        GRANTS,
        may=("liveness",),
        ways=LEASE,
        needs=("late", "busy", "renewed"),
    ),
    Kind(
        "recreates_key",
        "an extension takes a free lock again",
        ("linearizable",),
        # No client knows of the hold that a late renewal makes.
        may=("lease_exclusion", "liveness"),
        ways=LEASE,
        needs=("late", "renewed", "sparse"),
    ),
    Kind(
        "short_lease",
        "counts leases that are too short: in another unit, or by a fast clock",
        GRANTS,
        may=("liveness",),
        ways=("lease", "close"),
        needs=("contended",),
    ),
    Kind(
        "long_lease",
        "counts leases that are 1,000 times too long",
        ("liveness",),
        ways=("lease", "close"),
        needs=("deaths", "asking"),
    ),
    Kind(
        "never_expires",
        "never ends the lease of a client that lives",
        ("liveness",),
        ways=("lease", "close"),
        needs=("held", "asking"),
    ),
    Kind(
        "keeps_unreleased",
        "never ends a lease whose release was lost",
        ("liveness",),
        ways=LEASE,
        needs=("lost_releases", "asking", "calm"),
    ),
    Kind(
        "keeps_dead",
        "never frees the lock of a client that died",
        ("liveness",),
        needs=("deaths", "asking"),
    ),
    Kind(
        "dead_reader",
        "never frees the shared hold of a client that died, which keeps writers out",
        ("liveness",),
        ways=LEASE,
        needs=("deaths", "asking", "many", "readers"),
    ),
    Kind(
        "releases_foreign",
        "a release ends whoever's hold is on",
        ("ownership",),
        may=GRANTS,
        ways=("lease", "close"),
        needs=("late", "busy"),
    ),
    Kind(
        "leaks_release",
        "answers ok to a release, and never frees the lock",
        ("liveness",),
        share=0.3,
        needs=("asking",),
    ),
    Kind(
        "noop_release",
        "answers ok to a release, and keeps the lock until its lease is over",
        ("liveness",),
        ways=LEASE,
        needs=("true_refusals", "alone", "calm"),
    ),
    Kind(
        "jumps_queue",
        "grants the lock to the last who asked",
        ("liveness",),
        ways=QUEUES,
        share=0.8,
        needs=("crowd", "fifo"),
    ),
    Kind(
        "wakes_herd",
        "wakes every waiter whenever a hold ends",
        ("liveness",),
        ways=QUEUES,
        needs=("crowd", "one_wakeup"),
    ),
)
