"""Runs code that brings its own connections in a simulated world."""

from __future__ import annotations

import gc
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fencepost.hunt.intercept import loops, patches
from fencepost.hunt.intercept.context import Place, enter
from fencepost.hunt.intercept.watch import watched


@contextmanager
def inside(place: Place, seed: int, stuck: Callable[[str], BaseException]) -> Iterator[None]:
    """Replace the real world with this one, with a random seed, for as long as the block lasts.

    `stuck` makes the error that is raised if code runs for seconds without a step (watch.py).
    """
    patches.put()
    # A collection would close connections of an earlier run during the steps of this one.
    collects = gc.isenabled()
    gc.disable()
    before, disabled = random.getstate(), logging.root.manager.disable
    logging.disable()  # libraries log errors about servers that are down
    random.seed(seed)
    enter(place)
    try:
        with watched(stuck):
            yield
    finally:
        enter(None)
        loops.end(place.loops)
        if collects:
            gc.enable()
        random.setstate(before)
        logging.disable(disabled)
