"""Axes of a sweep over the faults of a family.

The fault comes again and again, always in the same way, and each time at the worst moment or close
to it, so that a few faults show where safety ends. `work` is the load of the clients meanwhile:

- For a pause that moment is right before a client's write. Holds are short (`SHORT`), so that each
  client comes to it soon, and none is late by itself.
- What makes servers forget (a clock, a restart) needs a hold that is on, and stays on: holds last
  for 60 to 80 % of the lease, one after the other (`LONG`). No client holds a lock for longer than
  85 % of its lease (workloads/client/critical_section.py), so a sweep does not see how a service
  behaves later in a lease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from fencepost.nemesis.targets import Drawn, Layout
from fencepost.setting import Form

SHORT: Mapping[str, Any] = {
    "hold": "0..100ms", "think": "0..20ms", "contention": "all", "work": {"extend": 0},
}  # fmt: skip
LONG: Mapping[str, Any] = {**SHORT, "hold": "0.6ttl..0.8ttl"}


@dataclass(frozen=True)
class FaultAxis:
    """`what` a value is, for people; `form` reads and shows it. Values lie from `least` to `most`.

    `draw` gives the fault of a value, with its duration; it raises ValueError if the layout cannot
    have it. `even`: steps are equal differences; else each is a multiple of the one before. `work`:
    the clients' settings.
    """

    name: str
    title: str
    what: str
    form: Form
    least: float
    most: float
    draw: Callable[[float, Layout, Random], Drawn]
    work: Mapping[str, Any]
    even: bool = False
