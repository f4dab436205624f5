"""Cancelled calls: a call of a client's lock ends before its answer, because nobody waits for it.

`asyncio.timeout` and `asyncio.TaskGroup` cancel a coroutine at one of its awaits. Ctrl-C and the
time limit of a worker raise an exception in any other call. The client does this when a signal asks
for it (workloads/client/cancelling.py): at a failpoint of its code (`arguments.point`, see
failpoints.py), in its running call, or shortly after its next one begins.
"""

from __future__ import annotations

import signal
from random import Random
from typing import Any

from fencepost.nemesis import failpoints
from fencepost.nemesis.aiming import OFTEN, Aimed, Aiming, Points, at_named_point
from fencepost.nemesis.family import Colour, Family
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault, Receipt, together
from fencepost.nemesis.site import Site
from fencepost.nemesis.targets import HOLDER, Drawn, Layout, listed, pick
from fencepost.nemesis.turns import one_in

TARGETS = ("client", HOLDER)
_CALL_S = 10.0
"""How long a client may take to call its lock: it may hold it, or rest, first."""


class Cancel:
    def __init__(self, site: Site) -> None:
        self._site = site

    def inject(self, fault: Fault) -> Receipt:
        return together([self._cancel(node, fault) for node in fault.targets])

    def _cancel(self, node: str, fault: Fault) -> Receipt:
        client, remote = self._site.client(node), self._site.remote(node)
        there = failpoints.reached(client, fault)
        before = client.cancelled
        remote.signal(client.pid, signal.SIGUSR1, client.started)  # see cancelling.py
        if there:
            client.leave_failpoint()
            remote.signal(client.pid, signal.SIGCONT, client.started)
        proved = client.wait_cancelled(before, _CALL_S)
        met = there and not client.cancelled_later
        data = {"process": client.process, "at": failpoints.where(fault, met)}
        how = "cancelled a call of its lock" if proved else "had no call to cancel in time"
        return Receipt(proved, f"pid {client.pid} on {node} {how}, {data['at']}", data)

    def heal(self, fault: Fault) -> Receipt:
        return Receipt(True, "a cancelled call leaves nothing to heal")


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    """Draw a client, half of the time while the reply to an acquire is under way."""
    _must_be_possible(at)
    in_flight = failpoints.REPLY if one_in(random, "in flight", 2) else None
    return [
        Drawn(pick(random, at, asked.target or "client"), {"point": asked.variant or in_flight})
    ]


def _aimed(
    random: Random, at: Layout, asked: Asked, length_s: float, points: Points
) -> Aimed | None:
    if asked.variant or not at.failpoints:
        return at_named_point(random, at, asked, length_s, points)
    point = points.next(at.failpoints, OFTEN) if random.random() < 0.75 else None
    return Aimed([HOLDER], {"point": point}, 0.1)


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    _must_be_possible(at)
    failpoints.validate(at, targets, arguments.get("point"))


def _must_be_possible(at: Layout) -> None:
    if not at.cancels:
        raise ValueError("only calls of a lock in Python can be cancelled")


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    point = arguments.get("point")
    return f"a call of {listed(targets)} is cancelled" + (f" at {point}" if point else "")


FAMILY = Family(
    name="cancel",
    what="a call of a client's lock is cancelled, as by asyncio.timeout or Ctrl-C",
    receipt="the client reports that it has cancelled a call",
    make=lambda site, chains: Cancel(site),
    draw=draw,
    describe=describe,
    strikes=("clients",),
    targets=TARGETS,
    variants=failpoints.ALL_FAILPOINTS,
    validate=validate,
    aim=Aiming(draw=_aimed),
    points="always",
    holder=failpoints.who_comes,
    moment=failpoints.await_failpoint,
    impairs=lambda targets, arguments: [],
    colour=Colour("#5b6b8c", "#93a4c8"),
)
