"""An action: one fault that can be injected before a step, other than that the run goes on.

An action that finds nothing to act on does nothing; one about a message waits for the next. Times
follow from the lease: most of it, or more than all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.world import Event

Inject = Callable[[Run, Event | None], bool]
"""Injects the fault and returns whether it could: False waits for the next event."""


@dataclass(frozen=True)
class Action:
    """`kind`: its family, or FAMILY/VARIANT. Actions of the same `way` differ only in their node
    and in how long they last. `client`: the client that it concerns, if it concerns one."""

    kind: str
    way: str
    inject: Inject
    client: int | None = None


def seconds(ns: int) -> str:
    return f"{ns / 1e9:.3g} s" if ns >= 1_000_000_000 else f"{ns / 1e6:.3g} ms"
