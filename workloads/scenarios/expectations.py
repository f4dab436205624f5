"""Expected verdicts of a schedule, each as a change to those of a sound run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fencepost.checker.verdict import Valid

Expected = Mapping[str, Valid]
"""A verdict by checker; checkers that are not named are not compared."""

KEPT: Final[dict[str, Valid]] = {
    "lease_exclusion": True,
    "linearizable": True,
    "mutual_exclusion": True,
    "ownership": True,
    "liveness": True,
    "store": True,
    "resource": True,
}
"""The lock keeps all its promises, and no client pauses past its lease.

This is a separate list, not the one of `sound`, which is for runs in which nothing goes wrong.
Schedules stop clients and servers on purpose, and no source predicts the verdicts of other
packages' checkers, or of the servers' logs, on that.
"""

FENCED: Final[dict[str, Valid]] = {"fencing": True}
"""The lock's tokens rise, and the resource rejects lower ones."""

DAMAGED: Final[dict[str, Valid]] = {"resource": False}

TWO_BELIEVE: Final[dict[str, Valid]] = KEPT | {"mutual_exclusion": False}
"""A client continues after its lease has expired: no lock service can prevent it."""

TWICE: Final[dict[str, Valid]] = TWO_BELIEVE | {"lease_exclusion": False, "linearizable": False}
"""The service grants a lock whose lease still runs."""

UNLOCKED: Final[dict[str, Valid]] = {"resource": True, "store": True, "mutual_exclusion": False}
"""No lock keeps clients apart; the resource protects itself."""

FREED: Final[dict[str, Valid]] = {"ownership": False, "lease_exclusion": False}
"""A release frees another client's lock, and the next client is granted it at once."""

STUCK: Final[dict[str, Valid]] = {"liveness": False, "lease_exclusion": True}
"""The lock is never granted again, so its exclusion cannot be broken either."""
