"""Reads the clock as this node's server shows it, relative to the node's own.

    clocks KIND CLOCK              one reading: {"low_s", "high_s"}
    clocks KIND CLOCK --mark       the reference of a later reading, if a clock shows only changes
    clocks KIND CLOCK --since M    one reading, M being the output of --mark

A reading gives bounds of the offset of the server's clock: the node's clock is read before and
after the server is asked, and the server's answer may be rounded down to ms or s. The file of each
kind defines how its server shows a clock. KIND may also be `node`:

    node       wall       the node's own, minus its monotonic one: to compare with a client's
               monotonic  the node's own, in ns: to compare with other kernels'
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
    """Return the node's wall clock minus its monotonic one, in ns, to compare with a client's."""
    before = time.monotonic_ns()
    wall = time.time_ns()
    return {"low_ns": wall - time.monotonic_ns(), "high_ns": wall - before}


_OWN: dict[str, Callable[[], dict[str, float]]] = {
    "wall": _wall,
    "monotonic": lambda: {"ns": time.monotonic_ns()},
}


def command(arguments: list[str]) -> dict[str, Any]:
    """Take one reading; return {"hidden": WHY} if the clock is not visible. OSError: no answer."""
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
