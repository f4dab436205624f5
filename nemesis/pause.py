"""Pauses: SIGSTOP and SIGCONT, of a server or of a client.

A garbage collector, a hypervisor and an operator do this to real processes. A client can be
stopped at a named point of its code (`arguments.point`), where it sends itself the signal: so
the point is hit every time, and not most times.
"""

from __future__ import annotations

import signal
import time
from random import Random
from typing import Any

from nemesis.nemesis import Fault, Receipt
from nemesis.site import Site

POINTS = ("acquired", "before-write", "replies-in-flight")
"""The points that every client comes by, or nearly every one."""
ALL_POINTS = (*POINTS, "between-check-and-delete")

# How long a client may take to come to its point before it is stopped wherever it is.
_POINT_S = 3.0
_STATE_S = 2.0


def await_point(site: Site, fault: Fault) -> None:
    """Let the client run into its point; after some seconds it is stopped wherever it is."""
    point = fault.arguments.get("point")
    if point is not None:
        client = site.client(fault.targets[0])
        if client.wait_point(point, 0.0):
            return  # a scenario has stopped it there already
        client.arm(point)
        client.wait_point(point, _POINT_S)


class Pause:
    def __init__(self, site: Site) -> None:
        self._site = site

    def inject(self, fault: Fault) -> Receipt:
        (node,) = fault.targets
        if node not in self._site.clients:
            return self._state(node, self._site.server(node).pause(), stopped=True)
        client = self._site.client(node)
        point = fault.arguments.get("point")
        reached = point is not None and client.wait_point(point, 0.0)
        if not reached:
            if point is not None:
                client.disarm(point)
            self._site.remote(node).signal(client.pid, signal.SIGSTOP)
        receipt = self._state(node, client.pid, stopped=True)
        at = f"at {point}" if reached else "wherever it was"
        data = receipt.data | {"process": client.process, "at": at}
        return Receipt(receipt.proved, f"{receipt.how}, {at}", data)

    def heal(self, fault: Fault) -> Receipt:
        (node,) = fault.targets
        if node not in self._site.clients:
            return self._state(node, self._site.server(node).resume(), stopped=False)
        pid = self._site.client(node).pid
        self._site.remote(node).signal(pid, signal.SIGCONT)
        return self._state(node, pid, stopped=False)

    def _state(self, node: str, pid: int | None, stopped: bool) -> Receipt:
        if pid is None:
            return Receipt(False, f"no process was there on {node}")
        end = time.monotonic() + _STATE_S
        remote = self._site.remote(node)
        while ((state := remote.state(pid)) == "T") != stopped and time.monotonic() < end:
            time.sleep(0.002)
        right = state is not None and (state == "T") == stopped
        return Receipt(
            right, f"pid {pid} on {node} is in state {state}", {"pid": pid, "state": state}
        )


def draw(
    random: Random, servers: list[str], clients: list[str]
) -> tuple[list[str], dict[str, Any]]:
    """A client twice as often as a server, and a client mostly at a named point."""
    if random.random() < 1 / 3:
        node = random.choice(servers)
        return [node], {"words": f"{node} is paused"}
    node = random.choice(clients)
    point = random.choice((*POINTS, None))
    where = f" at {point}" if point else ""
    return [node], {"point": point, "words": f"{node} is paused{where}"}
