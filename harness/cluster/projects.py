"""Assigns clusters to commands: a machine has a few, each with a project name and a reservation.

The names are fixed, so that any command finds the remains of a killed one. A command takes the
first unused cluster, and prefers one that is kept running (`cluster up`).
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fencepost.harness.cluster.reservation import SETUP, InUse, Reservation
from fencepost.harness.errors import BadArguments, Crashed

CLUSTERS = "FENCEPOST_CLUSTERS"
"""The environment variable with the clusters that a command may take, see and heal: 5-8, for
example; default: all. Commands that share an engine, but not the files of reservations, need
different ones: CI jobs in containers of their own, for example."""
_ALL = ("fencepost", *(f"fencepost-{n}" for n in range(2, 17)))
_LOOK_S = 0.2
_LANES = threading.Lock()


def names() -> tuple[str, ...]:
    """Return the clusters' names, which are their Compose projects. A machine that runs one command
    at a time uses only the first.

    Raises:
        BadArguments: the environment variable is not a range of clusters.
    """
    given = os.environ.get(CLUSTERS) or f"1-{len(_ALL)}"
    found = re.fullmatch(r"(\d{1,2})-(\d{1,2})", given, re.ASCII)
    first, last = map(int, found.groups()) if found else (0, 0)
    if not 1 <= first <= last <= len(_ALL):
        raise BadArguments(
            f"{CLUSTERS}={given!r} is not a range of this machine's clusters: set it to FIRST-LAST "
            f"(for example: 1-8; there are {len(_ALL)}), or unset it to use all"
        )
    return _ALL[first - 1 : last]


def kept_clusters() -> list[str]:
    """Return the clusters that are kept running after a run."""
    return [name for name in names() if Reservation(name).keep]


def take() -> tuple[str, Reservation]:
    """Reserve an unused cluster; return its name and the reservation.

    Raises:
        Crashed: all are in use, or the file of a reservation cannot be trusted.
    """
    first, every = kept_clusters(), names()
    for name in (*first, *(name for name in every if name not in first)):
        reservation = Reservation(name)
        try:
            reservation.take()
        except InUse:
            continue
        return name, reservation
    which = "of this machine" if every == _ALL else f"that {CLUSTERS} names"
    raise Crashed(
        f"all {len(every)} clusters {which} are in use by other fencepost commands. Wait for one "
        "to end, or stop one."
    )


@contextmanager
def setting_up(say: Callable[[str], None]) -> Iterator[None]:
    """Let only one command at a time set up engine and image; others wait for it, and say so.

    The lanes of one command (threads) wait for each other silently.
    """
    with _LANES, _set_up_alone(say):
        yield


@contextmanager
def _set_up_alone(say: Callable[[str], None]) -> Iterator[None]:
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
