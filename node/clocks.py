"""The clock as this node's server itself shows it, against the node's own.

    clocks KIND CLOCK              one look: {"low_s", "high_s"}
    clocks KIND CLOCK --mark       what a later look starts from, where a clock shows only change
    clocks KIND CLOCK --since M    one look, M being what --mark has said

A look gives bounds between which the offset of the server's clock lies: the node's clock is
read before and after the server was asked, and what the server shows may be cut off to ms or s.
How a server shows a clock stands in the file of its kind. KIND may also be `node`:

    node       wall       the node's own, less its monotonic one: to hold a client's against
               monotonic  the node's own, in ns: to hold other kernels' against
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from fencepost.node import kinds
from fencepost.node.watch import Hidden


def _wall() -> dict[str, float]:
    """The node's wall clock less its monotonic one, in ns: what a client's is held against."""
    before = time.monotonic_ns()
    wall = time.time_ns()
    return {"low_ns": wall - time.monotonic_ns(), "high_ns": wall - before}


_OWN: dict[str, Callable[[], dict[str, float]]] = {
    "wall": _wall,
    "monotonic": lambda: {"ns": time.monotonic_ns()},
}


def command(arguments: list[str]) -> dict[str, Any]:
    """Carry out one look; {"hidden": WHY} where there is nothing to see. OSError: no answer."""
    parser = argparse.ArgumentParser("clocks")
    parser.add_argument("kind")
    parser.add_argument("clock")
    parser.add_argument("--mark", action="store_true")
    parser.add_argument("--since", type=json.loads, default={})
    given = parser.parse_args(arguments)
    if given.kind == "node":
        return dict(_OWN[given.clock]())
    clock = kinds.find(given.kind).clocks.get(given.clock)
    try:
        if clock is None:
            raise Hidden(f"{given.kind} does not show a {given.clock} clock")
        if given.mark:
            return clock.mark() if clock.mark else {}
        return dict(clock.look(given.since))
    except Hidden as why:
        return {"hidden": str(why)}
