"""Cancels a running call of a client's lock: at one of its awaits, as asyncio.timeout does.

A call that does not run in an event loop is interrupted where it waits, by an exception of a
signal's handler.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fencepost.hunt.faults.simulated import Action, Simulated
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event


def _cancel(setting: Setting) -> Iterator[Action]:
    for client in range(len(setting.clients)):
        yield Action("cancel", "client", partial(_cancel_call, client), client)


def _cancel_call(index: int, run: Run, event: Event | None) -> None:
    node = run.clients[index]

    def cancel() -> None:
        f = node.activity
        if node.cancel():
            words = f"the call of {node.name} is cancelled"
            run.faults.begin("cancel", [node.name], {"f": f}, words, lasts=1)

    if node.up:
        # As a timer of the client's event loop does it: in a task of the client.
        run.begin(node, cancel)


SIMULATED = Simulated("cancel", _cancel, usual=lambda setting: setting.cancels, in_a_call=True)
