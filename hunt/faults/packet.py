"""Loses single messages, or delivers them twice."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fencepost.hunt.faults.simulated import Action, Simulated, seconds
from fencepost.hunt.sim.due import describe, ends
from fencepost.hunt.sim.network import Request
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS, Event

LOSS, DUPLICATE = "packet/loss", "packet/duplicate"


def _packet(setting: Setting) -> Iterator[Action]:
    yield Action(LOSS, "message", _lost)
    for by in (1 * MS, setting.ttl_ns // 2):
        yield Action(DUPLICATE, "message", partial(_twice, by))


def _lost(run: Run, event: Event | None) -> bool:
    # Replies of the store are not lost: a client would wait for one for two minutes.
    if not isinstance(event, Request) or event.server is run.storage:
        return False
    source, to = ends(event)
    event.off = True
    event.fell_silent()
    words = f"{describe(event)} is lost"
    arguments = {"kind": "loss", "source": source, "to": to}
    again = event.sent_again
    if again is None or run.setting.live:
        # With real clients the connection is reset soon.
        run.faults.begin("packet", [source], arguments, words, lasts=0)
    else:
        # Until then nothing passes on its connection.
        run.faults.begin("packet", [source], arguments, words, again)
    return True


def _twice(by: int, run: Run, event: Event | None) -> bool:
    if not isinstance(event, Request) or event.back:
        return False
    source, _ = ends(event)
    run.world.at(run.world.now + by, event.later())
    words = f"{describe(event)} arrives a second time, {seconds(by)} later"
    run.faults.begin("packet", [source], {"kind": "duplicate"}, words, lasts=by)
    return True


# No TCP connection delivers a message twice.
SIMULATED = Simulated(
    "packet",
    _packet,
    kinds=(LOSS, DUPLICATE),
    unusual=(DUPLICATE,),
    messages=True,
)
