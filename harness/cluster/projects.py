"""The clusters that one machine can have at a time: a project name and a reservation each.

The names are few and known, so that any command finds what a killed one left. A command takes the
first cluster that nobody uses; one that is kept up (`cluster up`) comes before all others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fencepost.harness.cluster.reservation import SETUP, InUse, Reservation
from fencepost.harness.errors import Crashed

NAMES = ("fencepost", *(f"fencepost-{n}" for n in range(2, 17)))
"""The Compose projects. The first is the one of a machine on which one command runs at a time."""

_LOOK_S = 0.2


def kept() -> list[str]:
    """The clusters that stay up after a run."""
    return [name for name in NAMES if Reservation(name).keep]


def take() -> tuple[str, Reservation]:
    """Reserve a cluster that nobody uses; return its name and the reservation.

    Raises:
        Crashed: all are in use, or a reservation's file cannot be trusted.
    """
    first = kept()
    for name in (*first, *(name for name in NAMES if name not in first)):
        reservation = Reservation(name)
        try:
            reservation.take()
        except InUse:
            continue
        return name, reservation
    raise Crashed(
        f"{len(NAMES)} fencepost commands are using a cluster each, and a machine has no more. "
        "Wait for one to end, or stop one."
    )


@contextmanager
def setting_up(say: Callable[[str], None]) -> Iterator[None]:
    """Engine and image are set up by one command at a time: the next one waits, and finds them."""
    reservation = Reservation(SETUP)
    told = False
    while True:
        try:
            reservation.take()
            break
        except InUse as busy:
            if not told:
                say(f"Waiting: engine and image are set up by one command at a time. {busy}")
            told = True
            time.sleep(_LOOK_S)
    try:
        yield
    finally:
        reservation.release()
