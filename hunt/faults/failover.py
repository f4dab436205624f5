"""Fails over a simulated Redis: the primary crashes and its replica is promoted."""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.hunt.faults.simulated import Action, Simulated
from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event


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


def primary(run: Run) -> RedisServer | None:
    """Return the server that has a replica."""
    redis = (one for one in run.servers if isinstance(one, RedisServer))
    return next((one for one in redis if one.replica is not None), None)


def _refuses(setting: Setting) -> str:
    if setting.replicated:
        return ""
    return f"{setting.lock} cannot fail over; these can: redis-replicated"


SIMULATED = Simulated(
    "failover",
    _failover,
    refuses=_refuses,
    betrays_store=True,
    unreplicated_lost=True,
)
