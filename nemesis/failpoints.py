"""Failpoints of clients: places of their code where a fault stops or kills one.

A client that reaches an armed failpoint reports it and stops itself
(workloads/client/failpoints.py), so a fault at one never misses. A fault names it as
`arguments.point`. Of a family that stops no client, it also names one as `arguments.client`: the
fault begins while this client waits at the failpoint, so that it meets the client's next request.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.nemesis.nemesis import Fault
from fencepost.nemesis.site import Client, Site
from fencepost.nemesis.targets import HOLDER, Layout, holder

FAILPOINTS = ("acquired", "before-write", "replies-in-flight")
"""Failpoints that every client reaches, or nearly every one."""
REPLY, _EXTENDED = REPLIES = ("replies-in-flight", "extend-in-flight")
"""The reply to an acquire or to an extend has not been read."""
_ACQUIRE, _EXTEND, _FURTHER = "before-acquire", "before-extend", "between-requests"
BEFORE = (_ACQUIRE, "before-release", _EXTEND, _FURTHER)
"""The first request of an op is about to be sent, or an op is about to send another request."""
EXTENDING = (_EXTENDED, _EXTEND)
"""Those of a lock that can be extended."""
COUNTED = (_EXTENDED, *BEFORE)
"""Those of a client that counts its lock's requests (workloads/client/steps.py), and no other."""
REQUESTS = (REPLY, *COUNTED)
SENDING = "before-send"
"""A scheduler has read which jobs are due, and is about to reserve and send one."""
ALL_FAILPOINTS = (*FAILPOINTS, "between-check-and-delete", SENDING, *COUNTED)

# How long a client may take to reach its failpoint before it is hit wherever it is. It may have to
# hold the lock, or to rest, first.
POINT_S = 8.0
_RARE_S = 5.0
# After two ops of each kind it is known whether any of them sends several requests.
_OPS = 2
# How long an acquire that meets a fault waits until the lock is free, and how long its reply takes.
_FREE_S, _REPLY_S = 3.0, 2.0
# How long a client takes at most to learn that the failpoint is disarmed.
_HEARS_S = 0.1


def patience_s(point: str) -> float:
    """Return how long (s) to wait for a client to reach a failpoint."""
    return _RARE_S if point in (*EXTENDING, _FURTHER) else POINT_S


def _waits_s(client: Client, point: str) -> float:
    return 0.0 if point in EXTENDING and not client.extends else patience_s(point)


def who_comes(site: Site, fault: Fault) -> tuple[str, str]:
    """Return the holder, and its description; for a failpoint, the client that reaches it first.

    A client that reaches a failpoint of a release holds the lock. Not every holder reaches it, for
    example not one whose lease expires before its release.
    """
    point: str | None = fault.arguments.get("point")
    if point is None:
        return holder(site)
    found = _stopped(site, {node: site.client(node) for node in site.clients}, point)
    return (found, f"{found} (the holder)") if found else holder(site)


def _stopped(site: Site, clients: Mapping[str, Client], point: str) -> str | None:
    """Stop the first client that reaches the failpoint, and return it; None if no client does in
    time. A client at which a fault would show nothing is resumed, and the next one is stopped; in
    the second half of the time any will do."""
    begun = time.monotonic()
    whole_s = max(_waits_s(client, point) for client in clients.values())
    choosy, end = begun + whole_s / 2, begun + whole_s
    asks = point == REPLY and all(client.counts for client in clients.values())
    while True:
        found, before = (_asks if asks else _met)(site, clients, point, end)
        if time.monotonic() > choosy or (found is None and not asks):
            return found
        if found is not None and not _in_vain(site, found, point, before):
            return found
        if found is not None:
            _let_go(site, found)
        if point == REPLY and not asks:
            _await_free(site, choosy)


def _met(
    site: Site, clients: Mapping[str, Client], point: str, end: float
) -> tuple[str | None, int]:
    """Stop the first client at the failpoint. Return it, and how many grants others had before."""
    before = {node: site.grants(without=node) for node in clients}
    for client in clients.values():
        client.arm(point)
    found = _first(clients, point, end)
    _resume_others(site, clients, (point,), found)
    return found, before.get(found or "", 0)


def _asks(
    site: Site, clients: Mapping[str, Client], point: str, end: float
) -> tuple[str | None, int]:
    """Do the same at the reply to an acquire, whose request is sent when the lock is free: an
    earlier one is refused. The others wait before their acquires until then."""
    for client in clients.values():
        client.arm(_ACQUIRE, then=point)
    found, before = _first(clients, _ACQUIRE, end), 0
    if found is not None:
        _await_free(site, min(end, time.monotonic() + _FREE_S))
        before = site.grants(without=found)
        _let_go(site, found)
        found = _first({found: clients[found]}, point, time.monotonic() + _REPLY_S)
    _resume_others(site, clients, (_ACQUIRE, point), found)
    # One that had stopped before its acquire may have reached its reply before the order to disarm.
    _resume_others(site, clients, (point,), found)
    return found, before


def _resume_others(
    site: Site, clients: Mapping[str, Client], points: Sequence[str], found: str | None
) -> None:
    others = {node: client for node, client in clients.items() if node != found}
    for client in others.values():
        for point in points:
            client.disarm(point)
    if others:
        # A client may have reached it before the order to disarm.
        time.sleep(_HEARS_S)
    for node in others:
        _let_go(site, node)


def _let_go(site: Site, node: str) -> None:
    client = site.client(node)
    client.leave_failpoint()
    site.remote(node).signal(client.pid, signal.SIGCONT, client.started)


def _in_vain(site: Site, node: str, point: str, before: int) -> bool:
    """Return whether a fault at this client's failpoint would show nothing: the release comes after
    the lease, or the reply is a refusal, because another client has been granted the lock.
    `before`: grants of other clients until the failpoint was armed."""
    if point == "before-release":
        return site.released_late(node)
    held = set(site.leased()) - {node}
    return point == REPLY and (bool(held) or site.grants(without=node) > before)


def _await_free(site: Site, end: float) -> None:
    while site.leased() and time.monotonic() < end:
        time.sleep(0.002)


def _first(clients: Mapping[str, Client], point: str, end: float) -> str | None:
    """Return the client that reaches the armed failpoint first; None if no client does in time, or
    if their locks send only one request in an op."""
    begun = _answered(clients)
    while time.monotonic() < end:
        for node, client in clients.items():
            if client.wait_failpoint(point, 0.0):
                return node
        if point == _FURTHER and all(
            now >= before + _OPS for now, before in zip(_answered(clients), begun, strict=True)
        ):
            return None
        time.sleep(0.002)
    return None


def _answered(clients: Mapping[str, Client]) -> list[int]:
    """Return how many releases were answered ok, and how many extends if the lock has them."""
    extends = any(client.extends for client in clients.values())
    ops = ("release", "extend") if extends else ("release",)
    return [sum(client.answered(f) for client in clients.values()) for f in ops]


def await_failpoint(site: Site, fault: Fault) -> None:
    """Let the client reach its failpoint; after some seconds it is hit wherever it is."""
    point = fault.arguments.get("point")
    if point is not None:
        node = fault.arguments.get("client", fault.targets[0])
        client = site.client(node)
        if client.wait_failpoint(point, 0.0):
            return  # a scenario has stopped it there already
        _stopped(site, {node: client}, point)


def resume(site: Site, fault: Fault) -> str:
    """Resume the client that waited until a fault had begun. Return where it was; "" if the fault
    names no client.

    An acquire goes on once the lock is free: one that is refused anyway shows little.
    """
    node = fault.arguments.get("client")
    if node is None:
        return ""
    client = site.client(node)
    there = reached(client, fault)
    if there and fault.arguments["point"] == _ACQUIRE:
        _await_free(site, time.monotonic() + _FREE_S)
    _let_go(site, node)
    return where(fault, there)


def reached(client: Client, fault: Fault) -> bool:
    """Return whether the client has stopped at the fault's failpoint; if not, it no longer will."""
    point = fault.arguments.get("point")
    if point is None:
        return False
    if client.wait_failpoint(point, 0.0):
        return True
    client.disarm(point)
    return False


def where(fault: Fault, there: bool) -> str:
    """Return the place of the client's code, for a receipt. `there`: it was at the failpoint."""
    return f"at {fault.arguments['point']}" if there else _ANYWHERE


_ANYWHERE = "wherever it was"


def missed(receipt: Mapping[str, Any]) -> bool:
    """Return whether the receipt of a fault shows that its client did not reach its failpoint."""
    return receipt.get("at") == _ANYWHERE


def validate(at: Layout, targets: list[str], point: str | None) -> None:
    """Raise ValueError if a fault of these targets cannot wait for this failpoint."""
    if point is None:
        return
    if point not in ALL_FAILPOINTS:
        known = ", ".join(ALL_FAILPOINTS)
        raise ValueError(f"clients have no failpoint {point!r}; choose one of: {known}")
    servers = [node for node in targets if node not in (*at.clients, HOLDER)]
    if servers:
        raise ValueError(f"{servers[0]} is a server: failpoints are for clients")
    if len(targets) > 1:
        raise ValueError("one client at a time is hit at a failpoint")
    if point in COUNTED and point not in at.failpoints:
        raise ValueError(
            f"{point}: the requests of this lock's clients are not counted; that is done for locks "
            "on Redis, and for your own lock in Python"
        )
