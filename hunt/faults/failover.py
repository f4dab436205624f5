"""Fails over simulated servers: the primary crashes and its replica is promoted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from fencepost.hunt.faults.simulated import Action, Simulated
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event
from fencepost.workloads.locks.registry import LOCKS


@runtime_checkable
class Replicated(Protocol):
    """A server of a model with replicas: `replica` follows it, unless it is `cut` off."""

    name: str
    up: bool
    cut: bool
    replica: Any

    def crash(self, power: bool) -> None: ...
    def start(self) -> None: ...
    def reconnect(self) -> None: ...
    def follow(self, primary: Any) -> None:
        """Become a replica of a primary; of None, a primary itself."""


def _failover(setting: Setting) -> Iterator[Action]:
    yield Action("failover", "server", _inject)


def _inject(run: Run, event: Event | None) -> None:
    """Crash the primary and promote its replica as it is; the old primary restarts as a replica."""
    old = primary(run)
    if old is None or old.replica is None or not old.up:
        return
    new = old.replica
    old.crash(power=False)
    new.follow(None)
    words = f"{old.name} dies and {new.name} is promoted"

    def back() -> None:
        old.start()
        old.follow(new)

    run.faults.begin("failover", [old.name, new.name], {}, words, back)


def primary(run: Run) -> Replicated | None:
    """Return the server that has a replica."""
    able = (one for one in run.servers if isinstance(one, Replicated))
    return next((one for one in able if one.replica is not None), None)


def _refuses(setting: Setting) -> str:
    if setting.replicated:
        return ""
    able = [lock.name for lock in LOCKS.sound()[0] if lock.replicated and not lock.server]
    return f"{setting.lock} cannot fail over; these can: {', '.join(able)}"


SIMULATED = Simulated(
    "failover",
    _failover,
    refuses=_refuses,
    betrays_store=True,
    unreplicated_lost=True,
)
