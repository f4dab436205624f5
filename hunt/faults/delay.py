"""Holds back single messages, which arrive later.

A late answer does most harm to a client that has asked again meanwhile. So with a user lock there
is a delay of just this length: until the client begins the same op again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from fencepost.hunt.faults.simulated import Action, Simulated, seconds
from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.due import describe, ends
from fencepost.hunt.sim.network import Request
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS, NEVER, Event

_OPS = ("acquire", "extend", "release")


def _delay(setting: Setting) -> Iterator[Action]:
    timeout = int(setting.options.get("node_timeout_ms", 50)) * MS
    half, longer = setting.ttl_ns // 2, timeout * 3 // 2
    if setting.live and "node_timeout_ms" not in setting.options:
        # A request of the first half of a lease then comes when another client, which asks at the
        # end of the lease, has the lock.
        longer = max(longer, setting.lease_ns * 2 // 3)
    # A grant is certainly late by 250 ms (checker/facts/late_grants.py): where time jumps, the
    # longest delay exceeds the lease by more, and ends in another's hold of a quarter of a lease.
    longest = setting.lease_ns * 23 // 20 if setting.live else setting.lease_ns * 11 // 10
    yield Action("delay", "message", partial(_late, longest))
    if setting.own is not None and not setting.elector:
        yield Action("delay", "message", _until_again)
    for by in (longer, timeout // 2, half):
        yield Action("delay", "message", partial(_late, by))


def _late(by: int, run: Run, event: Event | None) -> bool:
    if not isinstance(event, Request) or event.node.paused_until > run.world.now:
        return False
    _arrive(run, _held_back(event), by)
    _begin(run, event, f"held back for {seconds(by)}", lasts=by)
    return True


def _until_again(run: Run, event: Event | None) -> bool:
    """Hold a message back until its client begins the same op again, or has done its work."""
    if not isinstance(event, Request) or event.node.paused_until > run.world.now:
        return False
    client = event.link.client
    if not isinstance(client, ClientNode):
        return False
    late, f = _held_back(event), client.activity if client.activity in _OPS else "acquire"
    late.arrives = NEVER
    words = f"held back until {client.name} begins the next {f}"
    name = _begin(run, event, words, lambda: _arrive(run, late, event.link.latency))
    client.when_again(f, lambda: run.faults.on.get(name, _nothing)())
    return True


def _held_back(message: Request) -> Request:
    """Return the copy that arrives instead: this message is under way for as long as it takes."""
    message.off = True
    late = message.later()
    message.link.moved(message, late)
    return late


def _arrive(run: Run, late: Request, after: int) -> None:
    world = run.world
    if late.back:
        late.arrives = world.now + after
    world.at(world.now + after, late)


def _begin(
    run: Run,
    message: Request,
    what: str,
    undo: Callable[[], None] = lambda: None,
    lasts: int | None = None,
) -> str:
    """Record the fault, and return its name."""
    source, to = ends(message)
    words = f"{describe(message)} is {what}"
    arguments = {"source": source, "to": to}
    return run.faults.begin("delay", [source, to], arguments, words, undo, lasts)


def _nothing() -> None:
    """End nothing: the fault has ended."""


SIMULATED = Simulated("delay", _delay, messages=True, late=True)
