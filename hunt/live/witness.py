"""Observes a run with real clients, for its story and its picture."""

from __future__ import annotations

from typing import Any

from fencepost.hunt.live.trace import RealTrace
from fencepost.hunt.run import Run
from fencepost.hunt.sim.network import Request, Wire
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import World
from fencepost.hunt.story.messages import Recorder
from fencepost.hunt.story.story import Teller


class Witness:
    """Tells the story, records the messages, and traces the steps (network.Tap). A simulated run is
    replayed for each; a real one is observed once, because another would differ a little."""

    def __init__(self, setting: Setting) -> None:
        self.teller = Teller()
        self.recorder = Recorder(setting)
        self.trace = RealTrace(setting)

    def handled(self, link: Wire, command: tuple[Any, ...], reply: Any) -> None:
        self.teller.handled(link, command, reply)
        self.recorder.handled(link, command, reply)
        self.trace.handled(link, command, reply)

    def lost(self, link: Wire, command: tuple[Any, ...]) -> None:
        self.teller.lost(link, command)
        self.recorder.lost(link, command)
        self.trace.lost(command)

    def refused(self, link: Wire) -> None:
        self.teller.refused(link)
        self.recorder.refused(link)

    def sees(self, message: Request, now: int) -> None:
        self.recorder.sees(message, now)

    def ends(self, world: World) -> None:
        self.recorder.ends(world)
        self.trace.ends()


def of_run(run: Run) -> RealTrace:
    """Return the trace of a run that was observed."""
    assert isinstance(run.tap, Witness)
    return run.tap.trace
