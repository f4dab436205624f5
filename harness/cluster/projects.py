"""Assigns clusters to commands: a machine has a few, each with a project name and a reservation.

The names are fixed, so that any command finds the remains of a killed one. A command takes the
first unused cluster, and prefers one that is kept running (`cluster up`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fencepost.harness.cluster.reservation import SETUP, InUse, Reservation
from fencepost.harness.errors import Crashed

NAMES = ("fencepost", *(f"fencepost-{n}" for n in range(2, 17)))
"""The Compose projects. A machine that runs one command at a time uses only the first."""

_LOOK_S = 0.2


def kept_clusters() -> list[str]:
    """Return the clusters that are kept running after a run."""
    return [name for name in NAMES if Reservation(name).keep]


def take() -> tuple[str, Reservation]:
    """Reserve an unused cluster; return its name and the reservation.

    Raises:
        Crashed: all are in use, or the file of a reservation cannot be trusted.
    """
    first = kept_clusters()
    for name in (*first, *(name for name in NAMES if name not in first)):
        reservation = Reservation(name)
        try:
            reservation.take()
        except InUse:
            continue
        return name, reservation
    raise Crashed(
        f"all {len(NAMES)} clusters of this machine are in use by other fencepost commands. Wait "
        "for one to end, or stop one."
    )


@contextmanager
def setting_up(say: Callable[[str], None]) -> Iterator[None]:
    """Let only one command at a time set up engine and image; others wait for it."""
    reservation = Reservation(SETUP)
    reported = False
    while True:
        try:
            reservation.take()
            break
        except InUse as busy:
            if not reported:
                say(f"Waiting for another command to set up the engine and the image. {busy}")
            reported = True
            time.sleep(_LOOK_S)
    try:
        yield
    finally:
        reservation.release()
