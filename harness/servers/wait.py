"""Waits for conditions with timeouts that suit an overloaded machine, and reports slow ones.

A server usually starts within two seconds. A timeout near that would fail good runs on a loaded
machine; a long one only makes failing runs longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable

START_S = 180.0
"""How long a server may take to serve before a run begins."""
AGAIN_S = 60.0
"""How long a server may take to serve after a fault; other active faults may delay it."""
# The interval of reports on a slow condition.
_SLOW_S = 5.0
_LOOK_S = 0.03

Say = Callable[[str], None]


def silent(words: str) -> None:
    """Say nothing."""


def reporting(say: Say, words: str) -> Callable[[float], None]:
    """Return a `slow` for `until` that reports how long the wait has taken."""
    return lambda waited_s: say(f"{words}, for {waited_s:.0f} s now")


def until(
    condition: Callable[[], bool],
    timeout_s: float,
    slow: Callable[[float], None] = lambda waited_s: None,
) -> bool:
    """Wait for a condition; return False if it times out.

    `slow` is called every few seconds with the time waited so far, in s.
    """
    begun = time.monotonic()
    next_s = _SLOW_S
    while not condition():
        waited_s = time.monotonic() - begun
        if waited_s > timeout_s:
            return False
        if waited_s > next_s:
            slow(waited_s)
            next_s = waited_s + _SLOW_S
        time.sleep(_LOOK_S)
    return True
