"""Runs code that brings its own connections in a simulated world."""

from __future__ import annotations

import gc
import logging
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

from greenlet import GreenletExit

from fencepost.hunt.intercept import loops, patches
from fencepost.hunt.intercept.context import Place, destroying, enter
from fencepost.hunt.intercept.watch import watched

_left = False
"""Whether garbage of ended runs may be left, which a collection destroys."""


def _collecting(phase: str, about: dict[str, int]) -> None:
    global _left
    if _left:
        destroying(phase == "start")
        # Afterwards, destructors of other code run as usual.
        _left = phase == "start" or about["generation"] < 2


@contextmanager
def swept() -> Iterator[None]:
    """Destroy the remains of the runs of this block at its end."""
    try:
        yield
    finally:
        gc.collect()


@cache
def _quiet_destructors() -> None:
    """Let destructors that cannot finish end in silence, also in garbage collections."""
    shows = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if unraisable.exc_type is not GreenletExit:
            shows(unraisable)

    sys.unraisablehook = hook
    gc.callbacks.append(_collecting)


@contextmanager
def inside(
    place: Place, seed: int, stuck: Callable[[FrameType | None], BaseException]
) -> Iterator[None]:
    """Replace the real world with this one, with a random seed, for as long as the block lasts.

    `stuck` makes the error that is raised if code runs for seconds without a step (watch.py).
    """
    global _left
    patches.put()
    patches.restart_counters()
    _quiet_destructors()
    # A collection would close connections of an earlier run during the steps of this one.
    collects = gc.isenabled()
    gc.disable()
    before, disabled = random.getstate(), logging.root.manager.disable
    logging.disable()  # libraries log errors about servers that are down
    random.seed(seed)
    enter(place)
    try:
        with watched(lambda: place.world.step, stuck):
            yield
    finally:
        enter(None)
        loops.end(place.loops)
        _left = True
        if collects:
            gc.enable()
        random.setstate(before)
        logging.disable(disabled)
