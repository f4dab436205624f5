"""Cuts the power of simulated servers, which lose their unsynced data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fencepost.hunt.faults.kill import crash, drawn_crash, lacks
from fencepost.hunt.faults.simulated import Action, Simulated
from fencepost.hunt.sim.setting import Setting


def _power(setting: Setting) -> Iterator[Action]:
    for server in range(len(setting.servers)):
        yield Action("power", "one", partial(crash, server, True))


def _usual(setting: Setting) -> bool:
    """Without persistence, and where there is no choice of it, a loss of power has the effect of a
    crash."""
    return setting.survives in ("crash", "power")


SIMULATED = Simulated(
    "power",
    _power,
    usual=_usual,
    drawn=partial(drawn_crash, True),
    lacks=lacks,
    restarts=True,
    betrays_store=True,
    unsynced_lost=True,
)
