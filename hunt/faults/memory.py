"""Lets a simulated Redis server reach its memory limit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Protocol, runtime_checkable

from fencepost.hunt.faults.simulated import Action, Simulated
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event
from fencepost.nemesis.memory import POLICIES
from fencepost.nemesis.targets import listed


@runtime_checkable
class Limited(Protocol):
    """A server of a model that `evicts`."""

    def run_out(self) -> None:
        """Evict all present data, as under allkeys-lru when other data arrives."""

    def limit(self, reached: bool) -> None:
        """Refuse commands that need memory while the limit is reached."""


def _memory(setting: Setting) -> Iterator[Action]:
    for policy in POLICIES:
        for server in range(len(setting.servers)):
            yield Action("memory", policy, partial(_run_out, server, policy))


def _run_out(index: int, policy: str, run: Run, event: Event | None) -> None:
    server = run.servers[index]
    assert isinstance(server, Limited)
    if not server.up:
        return
    words = f"{server.name} runs out of memory under {policy}"
    if policy == "noeviction":
        server.limit(True)
    else:
        server.run_out()
        words += ", and evicts what it had"
    arguments = {"policy": policy}
    run.faults.begin("memory", [server.name], arguments, words, lambda: server.limit(False))


def _refuses(setting: Setting) -> str:
    if MODELS[setting.model].evicts:
        return ""
    able = dict.fromkeys(one.title or one.name for one in MODELS.values() if one.evicts)
    return f"only {listed(list(able))} servers have such a limit"


# Unusual: it needs other users of the same server.
SIMULATED = Simulated("memory", _memory, refuses=_refuses, unusual=("memory",), betrays_store=True)
