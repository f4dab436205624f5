"""Whom a fault hinders: all, because it is one of servers, or some clients only.

Each rule is that of docs/design.md, section 4, on liveness.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.holds import FOREVER
from tests.oracles.waiting import Fault


def sorted_out(ops: list[Op], test: dict[str, Any], faults: list[Fault]) -> list[Fault]:
    """Return these faults with the clients that they hinder alone."""
    servers = set(test["servers"])
    clients = {op.node for op in ops if op.process != "nemesis"} - servers
    return [replace(one, hinders=_hinders(one, earlier(faults), clients, test)) for one in faults]


def _hinders(
    fault: Fault, faults: list[Fault], clients: set[str | None], test: dict[str, Any]
) -> set[str] | None:
    servers = set(test["servers"])
    if cut := cut_from(fault, clients):
        promised = test["promises"].get("minority")
        kept = promised and _keeps_majorities(fault, faults, clients, servers)
        return None if kept else set(cut)
    if fault.impairs is None or (fault.impairs or set(fault.targets)) & servers:
        return None
    return set() if fault.kills else fault.impairs


def earlier(faults: list[Fault]) -> list[Fault]:
    """Begin the loss of a node at the start: it may have been gone before this was noticed."""
    return [
        replace(one, start=0)
        if one.impairs is None and one.end == FOREVER and not one.proved
        else one
        for one in faults
    ]


def cut_from(fault: Fault, clients: set[str | None]) -> dict[str, set[str]]:
    """Return the nodes from which a cut separates each client. Empty if it separates others."""
    found: dict[str, set[str]] = {}
    if not fault.impairs or fault.kills:
        return {}
    for one, other in fault.links:
        if not {one, other} & clients:
            return {}
        for near, far in ((one, other), (other, one)):
            if near in clients:
                found.setdefault(near, set()).add(far)
    return found


def _keeps_majorities(
    fault: Fault, faults: list[Fault], clients: set[str | None], servers: set[str]
) -> bool:
    """Return whether each client of a cut has a majority of the servers at each moment of it, and
    is separated from nothing but servers."""
    mine = cut_from(fault, clients)
    if not all(set(link) & servers for link in fault.links):
        return False
    for at in {one.start for one in faults if fault.start <= one.start <= fault.end}:
        on = active(faults, at)
        if not any(one is fault for one in on):
            continue
        if any(one.impairs is None for one in on):
            return False
        away = [cut_from(one, clients) for one in on]
        down = {
            node
            for one, cut in zip(on, away, strict=True)
            if not cut and not one.kills
            for node in one.impairs or one.targets
        }
        for client in mine:
            lacks = (down | {far for cut in away for far in cut.get(client, ())}) & servers
            if 2 * len(lacks) >= len(servers):
                return False
    return True


def active(faults: list[Fault], at: float) -> list[Fault]:
    """Return the faults that are on at a moment. A fault that ends then has ended, unless it began
    then as well."""
    return [one for one in faults if one.start <= at < one.end or one.start == at == one.end]
