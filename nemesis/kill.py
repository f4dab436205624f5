"""Crashes: SIGKILL of servers or of a client, and their restart.

`arguments.data`: a server comes back with what its persistence `kept` (the default), or `wiped`.
The fault ends when all of its servers serve again; a client's successor is a new process with a
new number. One whose server is never to come back lasts until the run is healed.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

from fencepost.nemesis.aim import SERVERS, Drawn, Layout, pick, subject
from fencepost.nemesis.asked import Asked
from fencepost.nemesis.nemesis import Fault, Receipt
from fencepost.nemesis.site import Site

DATA = ("kept", "wiped")
TARGETS = (*SERVERS, "rolling", "client")
VARIANTS = (*DATA, "never")

_GONE_S = 5.0
# Longer than any run: what heals such a fault is the end of it.
NEVER_S = 100_000.0


class Kill:
    def __init__(self, site: Site) -> None:
        self._site = site

    def inject(self, fault: Fault) -> Receipt:
        with ThreadPoolExecutor(len(fault.targets)) as pool:
            return together(list(pool.map(self._kill, fault.targets)))

    def _kill(self, node: str) -> Receipt:
        if node in self._site.clients:
            return self._kill_client(node)
        pid = self._site.server(node).kill()
        if pid is None:
            return Receipt(False, f"no server was there on {node}")
        gone = self._site.remote(node).state(pid) is None
        return Receipt(
            gone, f"pid {pid} on {node} is {'gone' if gone else 'still there'}", {"pid": pid}
        )

    def _kill_client(self, node: str) -> Receipt:
        """`processes`: who lived until this kill, and is gone by it."""
        client, remote = self._site.client(node), self._site.remote(node)
        # Looked at before: a process that had died by itself did not live until the kill.
        there = remote.state(client.pid) is not None
        if not there or not remote.signal(client.pid, signal.SIGKILL):
            client.wait_gone(_GONE_S)
            how = f"pid {client.pid} on {node} was gone before it was killed"
            return Receipt(False, how, {"pid": client.pid, "processes": []})
        end = time.monotonic() + _GONE_S
        while remote.state(client.pid) is not None and time.monotonic() < end:
            time.sleep(0.005)
        gone = remote.state(client.pid) is None
        client.wait_gone(_GONE_S)
        return Receipt(
            gone,
            f"pid {client.pid} on {node} is {'gone' if gone else 'still there'}",
            {"pid": client.pid, "processes": [client.process] if gone else []},
        )

    def heal(self, fault: Fault) -> Receipt:
        clients = [node for node in fault.targets if node in self._site.clients]
        servers = [node for node in fault.targets if node not in clients]
        wiped = fault.arguments.get("data") == "wiped"
        return together(
            [
                *(self._follow(node) for node in clients),
                *revive(self._site, servers, wiped),
            ]
        )

    def _follow(self, node: str) -> Receipt:
        client = self._site.restart_client(node)
        return Receipt(
            True,
            f"process {client.process} follows, pid {client.pid} on {node}",
            {"pid": client.pid},
        )


def revive(site: Site, nodes: list[str], wiped: bool) -> list[Receipt]:
    """Start servers that are down, all before the first is waited for: a quorum takes several."""
    for node in nodes:
        server = site.server(node)
        if wiped:
            server.wipe()
        server.start()
    return [_serves(site, node, wiped) for node in nodes]


def _serves(site: Site, node: str, wiped: bool) -> Receipt:
    server = site.server(node)
    server.wait_ready()
    pid = server.pid()
    empty = ", with an empty disk" if wiped else ""
    return Receipt(True, f"{node} serves again{empty}, pid {pid}", {"pid": pid})


def together(receipts: list[Receipt]) -> Receipt:
    """One receipt of several: proved where all are; with one alone it is that one."""
    if len(receipts) == 1:
        return receipts[0]
    return Receipt(
        bool(receipts) and all(receipt.proved for receipt in receipts),
        "; ".join(receipt.how for receipt in receipts),
        {
            "pids": [receipt.data.get("pid") for receipt in receipts],
            "processes": [p for receipt in receipts for p in receipt.data.get("processes", ())],
        },
    )


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    """A server three times as often as a client, where nothing else is asked."""
    target = asked.target
    if not target:
        target = "client" if random.random() < 0.25 else "one"
    arguments: dict[str, Any] = {"data": asked.variant} if asked.variant in DATA else {}
    if target == "rolling":
        return rolling(at, lambda nodes, after_s: _crash(nodes, arguments, at.restart_s, after_s))
    nodes = pick(random, at, target)
    down_s = NEVER_S if asked.variant == "never" else at.restart_s
    if set(nodes) <= set(at.clients):
        return [Drawn(nodes, arguments | {"words": f"{nodes[0]} is killed"})]
    return [_crash(nodes, arguments, down_s)]


def _crash(nodes: list[str], arguments: dict[str, Any], down_s: float, after_s: float = 0) -> Drawn:
    who = f"{subject(nodes)} crash"
    who += "es" if len(nodes) == 1 else ""
    lost = " and loses its data" if arguments.get("data") == "wiped" else ""
    never = ", for good" if down_s == NEVER_S else ""
    return Drawn(nodes, arguments | {"words": f"{who}{lost}{never}"}, after_s, down_s)


# A server is back some hundred ms after it was started, a member of a cluster a second or two.
_BETWEEN_S = 3.0


def rolling(at: Layout, one: Callable[[list[str], float], Drawn]) -> list[Drawn]:
    """Every server in turn, each some time after the one before came back."""
    step_s = at.restart_s + _BETWEEN_S
    return [one([node], number * step_s) for number, node in enumerate(at.servers)]


def refuse(at: Layout, targets: list[str], arguments: dict[str, Any]) -> str:
    data = arguments.get("data", "kept")
    if data not in DATA:
        return f"data {data!r}: choose one of {', '.join(DATA)}"
    if data == "wiped" and at.kind == "etcd":
        return "a member of etcd that lost its data is refused by the others: see nemesis leave"
    return ""
