"""Waits for conditions, as long as a machine with too much to do may take, and says what is slow.

A server is up in a second or two. A bound that is near to that ends good runs on a loaded machine,
and one that is far only makes bad runs longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable

START_S = 180.0
"""How long a server may take until it serves, before a run begins."""
AGAIN_S = 60.0
"""How long after a fault: others may be on that keep it from serving, and end meanwhile."""
# After so long, and again after each time as long, is said what is waited for.
_SLOW_S = 5.0
_LOOK_S = 0.03

Say = Callable[[str], None]


def silent(words: str) -> None:
    """Say nothing."""


def said(say: Say, words: str) -> Callable[[float], None]:
    """What says for how long something was waited for."""
    return lambda waited_s: say(f"{words}, for {waited_s:.0f} s now")


def until(
    condition: Callable[[], bool],
    timeout_s: float,
    slow: Callable[[float], None] = lambda waited_s: None,
) -> bool:
    """Wait for a condition; False if it does not come in time. `slow` is called now and then."""
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
