"""Clock jumps: the wall clock of one server is set forwards or back while it runs.

The server runs under libfaketime, which reads the offset from a file at every look at the
clock. The receipt is the clock as the server itself shows it: Redis' TIME.
"""

from __future__ import annotations

from random import Random
from typing import Any

from nemesis.nemesis import Fault, Receipt
from nemesis.site import Site

CLOCK_FILE = "/run/fencepost/clock"
# How far the offset that the server shows may be from the one that was set: the question is
# asked through a shell, which takes a while on a busy machine.
TOLERANCE_S = 0.25


class Clock:
    def __init__(self, site: Site) -> None:
        self._site = site

    def inject(self, fault: Fault) -> Receipt:
        return self._set(fault.targets, fault.arguments["offset_s"])

    def heal(self, fault: Fault) -> Receipt:
        return self._set(fault.targets, 0.0)

    def _set(self, nodes: list[str], offset_s: float) -> Receipt:
        shown: dict[str, float] = {}
        for node in nodes:
            self._site.remote(node).put(CLOCK_FILE, f"{offset_s:+.6f}\n".encode())
            shown[node] = round(self._site.server(node).clock_offset_s(), 3)
        right = all(abs(seen - offset_s) <= TOLERANCE_S for seen in shown.values())
        seen = ", ".join(f"{node} shows {offset:+.3f} s" for node, offset in shown.items())
        return Receipt(right, f"set to {offset_s:+.3f} s; {seen}", {"offset_s": shown})


def draw(random: Random, servers: list[str], ttl_s: float) -> tuple[list[str], dict[str, Any]]:
    """One server, forwards or back, by a tenth of the TTL up to ten times as much."""
    node = random.choice(servers)
    offset_s = round(random.choice((1, 1, -1)) * ttl_s * 10 ** random.uniform(-1, 1), 3)
    return [node], {"offset_s": offset_s, "words": f"the clock of {node} jumps {offset_s:+.3f} s"}
