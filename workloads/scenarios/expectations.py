"""What checkers are expected to say of a schedule, each as a change to what a sound run expects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fencepost.checker.verdict import Valid

Expected = Mapping[str, Valid]
"""A verdict by checker; what is not named is not compared."""

KEPT: Final[dict[str, Valid]] = {
    "lease_exclusion": True,
    "linearizable": True,
    "mutual_exclusion": True,
    "ownership": True,
    "liveness": True,
    "store": True,
    "resource": True,
}
"""The lock keeps all its promises, and no client sleeps through its lease.

A list of its own, and not all that `sound` expects: that is for runs in which nothing goes wrong.
Schedules stop clients and servers on purpose, and what a checker of another package, or a server's
log, says of that nobody has published.
"""

FENCED: Final[dict[str, Valid]] = {"fencing": True}
"""The lock hands out tokens that rise, and the resource lets no lower one pass."""

DAMAGED: Final[dict[str, Valid]] = {"resource": False}

TWO_BELIEVE: Final[dict[str, Valid]] = KEPT | {"mutual_exclusion": False}
"""A client works on when its lease is over: no lock service can prevent it."""

TWICE: Final[dict[str, Valid]] = TWO_BELIEVE | {"lease_exclusion": False, "linearizable": False}
"""The service grants a lock whose lease still runs."""

UNLOCKED: Final[dict[str, Valid]] = {"resource": True, "store": True, "mutual_exclusion": False}
"""No lock keeps clients apart, and the resource keeps itself."""

FREED: Final[dict[str, Valid]] = {"ownership": False, "lease_exclusion": False}
"""A release frees the lock of another client, and the next one is granted it at once."""

STUCK: Final[dict[str, Valid]] = {"liveness": False, "lease_exclusion": True}
"""Nobody gets the lock any more, so that nobody can break its exclusion either."""
