"""Restarts servers after a fault: when, in which order, and whether they serve again."""

from __future__ import annotations

import time
from collections.abc import Callable

from fencepost.nemesis.nemesis import Receipt
from fencepost.nemesis.site import Site
from fencepost.nemesis.targets import Drawn, Layout

# Longer than any run: the end of the run heals such a fault.
NEVER_S = 100_000.0
# A server is back some hundred ms after it was started, a member of a cluster a second or two.
_BETWEEN_S = 3.0
_SLOW_S = 10.0


def revive(site: Site, nodes: list[str], wiped: bool) -> list[Receipt]:
    """Start servers that are down, all before waiting for the first: a quorum takes several."""
    for node in nodes:
        if wiped:
            site.own_server(node).wipe()
        site.server(node).start()
    return [_serves(site, node, wiped) for node in nodes]


def _serves(site: Site, node: str, wiped: bool) -> Receipt:
    server = site.server(node)
    begun = time.monotonic()
    server.wait_ready()
    took_s = time.monotonic() - begun
    pid = server.pid()
    empty = ", with an empty disk" if wiped else ""
    slow = f", after {took_s:.0f} s" if took_s > _SLOW_S else ""
    return Receipt(True, f"{node} serves again{empty}{slow}, pid {pid}", {"pid": pid})


def rolling(at: Layout, one: Callable[[list[str], float], Drawn]) -> list[Drawn]:
    """Yield every server in turn, each some time after the one before came back."""
    step_s = at.restart_s + _BETWEEN_S
    return [one([node], number * step_s) for number, node in enumerate(at.servers)]
