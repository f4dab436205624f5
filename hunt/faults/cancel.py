"""Cancels a running call of a client's lock: at one of its awaits, as asyncio.timeout does.

A call that does not run in an event loop is interrupted where it waits, by an exception of a
signal's handler.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from fencepost.hunt.faults.simulated import Action, Inject, Simulated
from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event
from fencepost.nemesis.targets import Drawn


def _cancel(setting: Setting) -> Iterator[Action]:
    for client in range(len(setting.clients)):
        yield Action("cancel", "client", partial(_cancel_call, client), client)


def _cancel_call(index: int, run: Run, event: Event | None) -> None:
    cancel(run, run.clients[index], {})


def cancel(run: Run, node: ClientNode, arguments: dict[str, Any]) -> None:
    """Cancel the running call of a client's lock. The fault begins only if there is one."""

    def cancelled() -> None:
        words = f"the call of {node.name} is cancelled"
        run.faults.begin("cancel", [node.name], {"f": node.activity, **arguments}, words, lasts=1)

    if node.up:
        # A thread of the client does it, which is stopped with the client.
        run.begin(node, lambda: node.cancel(cancelled))


def _drawn(drawn: Drawn, lasts: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        for client in run.clients:
            if client.name in drawn.targets:
                cancel(run, client, drawn.arguments)
        return True

    return inject


SIMULATED = Simulated(
    "cancel", _cancel, usual=lambda setting: setting.in_loop, drawn=_drawn, in_a_call=True
)
