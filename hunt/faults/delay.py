"""Holds back single messages, which arrive later."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fencepost.hunt.faults.simulated import Action, Simulated, seconds
from fencepost.hunt.sim.due import describe, ends
from fencepost.hunt.sim.network import Request
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS, Event


def _delay(setting: Setting) -> Iterator[Action]:
    timeout = int(setting.options.get("node_timeout_ms", 50)) * MS
    half, longer = setting.ttl_ns // 2, timeout * 3 // 2
    if setting.live and "node_timeout_ms" not in setting.options:
        # A request of the first half of a lease then comes when another client, which asks at the
        # end of the lease, has the lock.
        longer = max(longer, setting.lease_ns * 2 // 3)
    for by in (setting.lease_ns * 11 // 10, longer, timeout // 2, half):
        yield Action("delay", "message", partial(_late, by))


def _late(by: int, run: Run, event: Event | None) -> bool:
    if not isinstance(event, Request) or event.node.paused_until > run.world.now:
        return False
    source, to = ends(event)
    # A copy arrives instead; this message is under way for as long as it takes.
    event.off = True
    world = run.world
    late = event.later()
    if late.back:
        late.arrives = world.now + by
    event.link.moved(event, late)
    world.at(world.now + by, late)
    words = f"{describe(event)} is held back for {seconds(by)}"
    arguments = {"source": source, "to": to}
    run.faults.begin("delay", [source, to], arguments, words, lasts=by)
    return True


SIMULATED = Simulated("delay", _delay, messages=True, late=True)
