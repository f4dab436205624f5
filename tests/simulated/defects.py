"""The defects that a service or a store can have, one at a time, and which checkers must find each.

A defect occurs now and then, not at each of its chances, so that runs differ. An occurrence does
not suffice for a verdict. truth.py decides, for each checker, whether an effect reached a client in
such a way that the definition leaves no other verdict than false: then the checker must return it.
`may` names the checkers that may return false besides, because it follows from the defect. The
truth of every run says whether two holders really overlapped, and whether data was really damaged,
so no defect needs an exemption for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Kind:
    """One defect.

    `share`: how often it occurs when it could. `needs`: names of settings (plan.py) without which
    it cannot occur.
    """

    name: str
    what: str
    must: tuple[str, ...]
    may: tuple[str, ...] = ()
    share: float = 1.0
    needs: tuple[str, ...] = ()


_GRANTS = ("lease_exclusion", "linearizable")

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("none", "sound", ()),
        # A client that is admitted early overtakes waiting clients, and may get the token of shared
        # holds.
        Kind(
            "grants_early",
            "grants a lock whose lease still runs",
            _GRANTS,
            may=("liveness", "fencing"),
            share=0.15,
        ),
        Kind("forgets", "forgets who holds a lock", _GRANTS, share=0.7),
        Kind(
            "mixes_modes",
            "grants an exclusive hold beside shared ones, or the other way round",
            ("lease_exclusion",),
            # A hold that joins shared ones gets their token, though an exclusive one came between;
            # and it is admitted before waiting clients.
            may=("fencing", "liveness"),
            share=0.6,
            needs=("shared",),
        ),
        Kind(
            "extends_lost",
            "answers ok to the extension of a hold that is over",
            _GRANTS,
            # A hold that was lost and extended again keeps others waiting.
            may=("liveness",),
            share=0.9,
            needs=("late", "busy", "renewed"),
        ),
        Kind(
            "repeats_token",
            "gives a token again, or a lower one",
            ("fencing", "linearizable"),
            # Tokens decide which client came later, and so which write is stale.
            may=("resource",),
            share=0.3,
            needs=("tokens",),
        ),
        Kind(
            "jumps_queue",
            "grants the lock to the last who asked",
            ("liveness",),
            share=0.8,
            needs=("queue", "crowd", "fifo"),
        ),
        Kind(
            "wakes_herd",
            "wakes every waiter whenever a hold ends",
            ("liveness",),
            needs=("queue", "crowd", "one_wakeup"),
        ),
        Kind(
            "releases_foreign",
            "a release ends whoever's hold is on",
            ("ownership",),
            may=_GRANTS,
            needs=("late", "busy"),
        ),
        Kind(
            "keeps_dead",
            "never frees the lock of a client that died",
            ("liveness",),
            needs=("deaths",),
        ),
        Kind(
            "accepts_stale",
            "the resource accepts a token below the highest",
            ("fencing", "resource"),
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
            share=0.8,
            needs=("refuses", "late"),
        ),
    )
}


class Defect:
    """The defect of one run; `struck` counts its occurrences."""

    def __init__(self, name: str, random: Random) -> None:
        self.name = name
        self.kind = KINDS[name]
        self.struck = 0
        self._random = random

    def strikes(self, name: str) -> bool:
        """Return whether this is the run's defect, and it occurs now."""
        if name != self.name or self._random.random() >= self.kind.share:
            return False
        self.struck += 1
        return True
