"""Hashes the state of a simulated run, so that the exhaustive search recognises known states.

A state is known if everything that affects the rest of the run was the same in an earlier state:
the time, the next event, all queued events, each server with its data, clocks and disk, cut links
and open connections, the active faults, and each client. A client is represented by everything that
it has observed, and when: replies, reads of the clock, timeouts, refused connections. Its code is
the same in all runs, and its random numbers come from the schedule, so its observations determine
its next actions. Two clients with the same observations are in the same state; two with different
ones count as different, even if they would behave alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import FunctionType
from typing import Any

from fencepost.hunt.run import Run
from fencepost.hunt.sim.network import Network, Refusal, Request, Server, Wire
from fencepost.hunt.sim.world import Event, Node, Task, Timer, Wake, World

_PLAIN = (int, float, str, bytes, bool, type(None))
# These are covered elsewhere, or never change.
_LEFT_OUT = {"network", "world", "servers", "_scripts"}


class Seen:
    """The observations of each client of a run, as a number each.

    It observes the network (network.Tap), and is called at each step.
    """

    def __init__(self, clients: int) -> None:
        self._by_client = [0] * clients

    def step(self, run: Run, event: Event | None) -> None:
        """Note that a client reads the clock or receives something."""
        now = run.world.now
        if event is None:
            running = run.world.running
            if running is not None:
                self._note(running.node, "looks", now)
        elif isinstance(event, Request):
            if event.back:
                self._note(event.link.client, "hears", now, describe(event))
        else:
            self._note(event.node, "wakes", now)

    def handled(self, link: Wire, command: tuple[Any, ...], reply: Any) -> None:
        """Do nothing: the server's state contains the effect of the command."""

    def lost(self, link: Wire, command: tuple[Any, ...]) -> None:
        """Do nothing: no client observes the loss."""

    def refused(self, link: Wire) -> None:
        self._note(link.client, "is refused", link.network.world.now, link.server.name)

    def _note(self, node: Node, *what: Any) -> None:
        if node.index < len(self._by_client) and not isinstance(node, Server) and node.index >= 0:
            self._by_client[node.index] = hash((self._by_client[node.index], *what))

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_client)


def state(run: Run, seen: Seen, event: Event | None) -> int:
    """Return a hash of the run's state before the next event.

    It is valid in this process alone, because Python's hashes of strings differ between processes.
    """
    world, network = run.world, run.network
    running = world.running
    unsent = world.unsent
    return hash(
        (
            world.now,
            None if event is None else describe(event),
            None if running is None or event is not None else running.node.name,
            None if unsent is None else describe(unsent),
            tuple((time, describe(one)) for time, _, one in sorted(world.queue, key=_order)
                  if not one.off),
            tuple(seen),
            tuple(describe(node, whole=True) for node in run.nodes.values()),
            tuple((node.up, node.paused_until) for node in run.clients),
            frozenset(network.requests_cut),
            frozenset(network.replies_cut),
            tuple((index, tuple(wire.ends for wire in wires))
                  for index, wires in sorted(network.open.items())),
            tuple(run.faults.on),
            run.faults.until,
            run.pending,
        )
    )  # fmt: skip


def _order(entry: tuple[int, int, Any]) -> tuple[int, int]:
    return entry[:2]


def describe(thing: Any, whole: bool = False, depth: int = 0) -> Any:
    """Return an object's identity as a hashable value.

    `whole`: describe a server with all its data, not just by its name.
    """
    if isinstance(thing, _PLAIN):
        return thing
    if isinstance(thing, tuple | list):
        return tuple(describe(one, depth=depth + 1) for one in thing)
    if isinstance(thing, dict):
        return tuple((describe(k), describe(v, depth=depth + 1)) for k, v in thing.items())
    if isinstance(thing, set | frozenset):
        return frozenset(describe(one) for one in thing)
    if isinstance(thing, Request):
        flags = thing.back, thing.ready, thing.answered, thing.off
        told = describe(thing.command), describe(thing.reply)
        return "message", *thing.link.ends, thing.sent, thing.boot, *flags, *told
    if isinstance(thing, Refusal):
        return "refusal", str(thing)
    if isinstance(thing, Wake):
        return "wake", thing.node.name, thing.off
    if isinstance(thing, Timer):
        return "timer", thing.node.name, thing.off, describe(thing.call)
    if isinstance(thing, FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        return thing.__qualname__, tuple(one for one in cells if isinstance(one, _PLAIN))
    if isinstance(thing, Node) and not whole:
        return thing.name
    if isinstance(thing, World | Network | Task):
        return type(thing).__name__
    return type(thing).__name__, tuple(
        (name, describe(value, depth=depth + 1)) for name, value in _parts(thing)
    )


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """Return the attributes of an object, by name."""
    if is_dataclass(thing):
        names = [one.name for one in fields(thing)]
    else:
        names = [*getattr(thing, "__dict__", ())]
        for kind in type(thing).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            names += [slots] if isinstance(slots, str) else slots
    for name in dict.fromkeys(names):
        if name not in _LEFT_OUT and hasattr(thing, name):
            yield name, getattr(thing, name)
