"""The record of a defect."""

from __future__ import annotations

from dataclasses import dataclass

SINGLE = ("lease", "close", "connection")
QUEUES = ("close", "connection")
LEASE = ("lease",)
QUORUM = ("quorum",)
GRANTS = ("lease_exclusion", "linearizable")
"""The checkers of a second grant within a lease."""


@dataclass(frozen=True)
class Kind:
    """One defect.

    `must` names the checkers that must return false once the defect reached a client for certain
    (reached.py); `may` those that may besides, because it follows from the defect. The truth of
    every run says whether two holders really overlapped, and whether data was really damaged, so
    no defect needs an exemption for that.

    `ways`: the services that can have it (plan.WAYS). `share`: how often it occurs when it could.
    `needs`: names of settings (suiting.py) without which it cannot occur.
    """

    name: str
    what: str
    must: tuple[str, ...]
    may: tuple[str, ...] = ()
    ways: tuple[str, ...] = SINGLE
    share: float = 1.0
    needs: tuple[str, ...] = ()
