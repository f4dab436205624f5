"""Replaces Python's clocks and sleep. Each reading of a clock is a step.

A simulated machine is in UTC. Its processes compute without a pause, so their processor time is the
time since the start.
"""

from __future__ import annotations

import calendar
import os
import queue
import threading
import time
import timeit
from collections.abc import Callable, Iterator
from typing import Any

from fencepost.hunt.intercept.context import Place, either, here
from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.clock import EPOCH_NS, MONOTONIC_NS

_WALL = ("CLOCK_REALTIME", "CLOCK_REALTIME_COARSE", "CLOCK_TAI")
_SINCE_START = ("CLOCK_PROCESS_CPUTIME_ID", "CLOCK_THREAD_CPUTIME_ID")

Read = Callable[[Place], int]
"""Reads a simulated clock; returns ns."""


def _monotonic(place: Place) -> int:
    return MONOTONIC_NS + place.step()


def _since_start(place: Place) -> int:
    return place.step()


def wall(place: Place) -> int:
    """Return the wall clock of the running client, in ns."""
    now, node = place.step(), place.task.node
    return node.clock.ns(now) if isinstance(node, ClientNode) else EPOCH_NS + now


def _clock(real: Callable[[], Any], read: Read, in_s: bool) -> Callable[[], Any]:
    def clock() -> Any:
        place = here()
        if place is None:
            return real()
        ns = read(place)
        return ns / 1e9 if in_s else ns

    return clock


def _clock_gettime(real: Callable[[int], Any], in_s: bool) -> Callable[[int], Any]:
    kinds = {
        getattr(time, name): read
        for names, read in ((_WALL, wall), (_SINCE_START, _since_start))
        for name in names
        if hasattr(time, name)
    }

    def clock_gettime(clock: int) -> Any:
        place = here()
        if place is None:
            return real(clock)
        ns = kinds.get(clock, _monotonic)(place)
        return ns / 1e9 if in_s else ns

    return clock_gettime


def seconds(value: float | None = None) -> float:
    """Return a time in s, by default that of the running client's wall clock."""
    if value is not None:
        return value
    place = here()
    assert place is not None
    return wall(place) / 1e9


_REAL = {
    name: getattr(time, name) for name in ("asctime", "gmtime", "sleep", "strftime", "localtime")
}


def _gmtime(value: float | None = None) -> time.struct_time:
    found: time.struct_time = _REAL["gmtime"](seconds(value))
    return found


def _asctime(parts: Any = None) -> str:
    return str(_REAL["asctime"](_gmtime() if parts is None else parts))


def _strftime(form: str, parts: Any = None) -> str:
    return str(_REAL["strftime"](form, _gmtime() if parts is None else parts))


def _mktime(parts: Any) -> float:
    return float(calendar.timegm(tuple(parts)))


def _times() -> os.times_result:
    since = seconds() - EPOCH_NS / 1e9
    return os.times_result((since, 0.0, 0.0, 0.0, MONOTONIC_NS / 1e9 + since))


def _sleep(duration: float) -> None:
    place = here()
    if place is None:
        _REAL["sleep"](duration)
        return
    if duration < 0:
        raise ValueError("sleep length must be non-negative")
    place.step()
    place.world.sleep(round(duration * 1e9))


def places() -> Iterator[tuple[Any, str, Any]]:
    """Yield each owner, the name to replace in it, and the replacement."""
    for name, read in (
        ("monotonic", _monotonic), ("perf_counter", _monotonic), ("time", wall),
        ("process_time", _since_start), ("thread_time", _since_start),
    ):  # fmt: skip
        for word, in_s in ((name, True), (f"{name}_ns", False)):
            if hasattr(time, word):
                yield time, word, _clock(getattr(time, word), read, in_s)
    for word, in_s in (("clock_gettime", True), ("clock_gettime_ns", False)):
        if hasattr(time, word):
            yield time, word, _clock_gettime(getattr(time, word), in_s)
    yield time, "sleep", _sleep
    yield time, "gmtime", either(time.gmtime, _gmtime)
    yield time, "localtime", either(time.localtime, _gmtime)
    yield time, "ctime", either(time.ctime, lambda value=None: _asctime(_gmtime(value)))
    yield time, "asctime", either(time.asctime, _asctime)
    yield time, "strftime", either(time.strftime, _strftime)
    yield time, "mktime", either(time.mktime, _mktime)
    yield os, "times", either(os.times, _times)
    yield threading, "_time", time.monotonic
    yield queue, "time", time.monotonic
    yield timeit, "default_timer", time.perf_counter
