"""An action: one fault that can be injected before a step.

An action without a target does nothing; one about a message waits for the next message. Durations
follow from the lease: most of it, or more than all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.world import Event

Inject = Callable[[Run, Event | None], bool | None]
"""Injects the fault. If it returns False, it could not, and is called again at the next event."""


@dataclass(frozen=True)
class Action:
    """A fault with its targets and its duration.

    `kind`: its family, or FAMILY/VARIANT. Actions of the same `way` differ only in their node and
    duration. `client`: the client that it concerns, if any.
    """

    kind: str
    way: str
    inject: Inject
    client: int | None = None


def seconds(ns: int) -> str:
    return f"{ns / 1e9:.3g} s" if ns >= 1_000_000_000 else f"{ns / 1e6:.3g} ms"
