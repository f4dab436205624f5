"""Crashes: SIGKILL of servers or of a client, and their restart.

`arguments.data`: a server restarts with the data that its persistence `kept` (the default), or
`wiped`. The fault ends when all of its servers serve again; a client's successor is a new process
with a new number. With `arguments.back` `never` it lasts until the end of the run. A client can be
killed at a failpoint of its code (`arguments.point`, see failpoints.py).
"""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

from fencepost.nemesis import failpoints
from fencepost.nemesis.aiming import (
    HOLDERS,
    OFTEN,
    Aimed,
    Aiming,
    Points,
    any_client,
    at_named_point,
)
from fencepost.nemesis.axis import LONG, FaultAxis
from fencepost.nemesis.chains import Chains
from fencepost.nemesis.family import Closing, Colour, Column, Family, Strike
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault, Receipt, together
from fencepost.nemesis.restart import NEVER_S, revive, rolling
from fencepost.nemesis.site import PROCESSES, Site
from fencepost.nemesis.targets import HOLDER, SERVERS, Drawn, Layout, pick, sentence
from fencepost.nemesis.turns import one_in
from fencepost.setting import TIME_S

DATA = ("kept", "wiped")
TARGETS = (*SERVERS, "rolling", "client", HOLDER)
VARIANTS = (*DATA, "never", *failpoints.ALL_FAILPOINTS)

_GONE_S = 20.0


class Kill:
    def __init__(self, site: Site, chains: Chains) -> None:
        self._site = site
        self._chains = chains

    def inject(self, fault: Fault) -> Receipt:
        with ThreadPoolExecutor(len(fault.targets)) as pool:
            return together(list(pool.map(lambda node: self._kill(node, fault), fault.targets)))

    def _kill(self, node: str, fault: Fault) -> Receipt:
        if node in self._site.clients:
            return self._kill_client(node, fault)
        pid = self._site.server(node).kill()
        if pid is None:
            return Receipt(False, f"no server was running on {node}")
        return _gone(node, pid, self._site.remote(node).state(pid) is None, {})

    def _kill_client(self, node: str, fault: Fault) -> Receipt:
        """Kill a client. `processes`: those that lived until this kill, and are gone by it; `at`:
        the failpoint at which it was killed, if the fault names one."""
        client, remote = self._site.client(node), self._site.remote(node)
        there = failpoints.reached(client, fault)
        at = {"at": failpoints.where(fault, there)} if fault.arguments.get("point") else {}
        for _ in range(PROCESSES):
            pid, started = client.pid, client.started
            # Checked before: a process that had died by itself did not live until the kill.
            alive = remote.state(pid, started) is not None
            killed = alive and remote.signal(pid, signal.SIGKILL, started)
            if killed or client.pid == pid:
                break
        if not killed:
            client.wait_gone(_GONE_S)
            how = f"pid {pid} on {node} was gone before it was killed"
            return Receipt(False, how, {"pid": pid, "processes": []})
        end = time.monotonic() + _GONE_S
        while remote.state(pid, started) is not None and time.monotonic() < end:
            time.sleep(0.005)
        gone = remote.state(pid, started) is None
        client.wait_gone(_GONE_S)
        return _gone(node, pid, gone, {"processes": [client.process] if gone else []} | at)

    def heal(self, fault: Fault) -> Receipt:
        clients = [node for node in fault.targets if node in self._site.clients]
        servers = [node for node in fault.targets if node not in clients]
        follow = [self._follow(node) for node in clients]
        for node in servers:
            # An external container, with its network.
            self._chains.forget(node)
        wiped = fault.arguments.get("data") == "wiped"
        return together(follow + revive(self._site, servers, wiped))

    def _follow(self, node: str) -> Receipt:
        client = self._site.restart_client(node)
        how = f"process {client.process} follows, pid {client.pid} on {node}"
        return Receipt(True, how, {"pid": client.pid})


def _gone(node: str, pid: int, gone: bool, data: dict[str, Any]) -> Receipt:
    how = f"pid {pid} on {node} is {'gone' if gone else 'still there'}"
    how += f", killed {data['at']}" if "at" in data else ""
    return Receipt(gone, how, {"pid": pid} | data)


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    """Draw a server three times as often as a client, by default."""
    target = asked.target
    point = asked.variant if asked.variant in failpoints.ALL_FAILPOINTS else ""
    if point:
        return [Drawn(pick(random, at, target or HOLDER), {"point": point})]
    if not target:
        target = "client" if one_in(random, "client", 4) else "one"
    arguments: dict[str, Any] = {"data": asked.variant} if asked.variant in DATA else {}
    if target == "rolling":
        return rolling(at, lambda nodes, after_s: Drawn(nodes, arguments, after_s, at.restart_s))
    nodes = pick(random, at, target)
    if set(nodes) <= {*at.clients, HOLDER}:
        return [Drawn(nodes, arguments)]
    if asked.variant == "never":
        return [Drawn(nodes, {"back": "never"}, duration_s=NEVER_S)]
    return [Drawn(nodes, arguments, duration_s=at.restart_s)]


def _aimed(
    random: Random, at: Layout, asked: Asked, length_s: float, points: Points
) -> Aimed | None:
    """Kill the holder, more often than not at a failpoint of its lock's code."""
    if found := at_named_point(random, at, asked, length_s, points):
        return found
    if not any_client(asked):
        return None
    if asked.target and random.random() > HOLDERS:
        return Aimed([random.choice(at.clients)], {}, 0.5 * length_s)
    if not asked.target and random.random() >= 0.4:
        return None
    own = at.failpoints and random.random() < 0.6
    arguments = {"point": points.next(at.failpoints, OFTEN)} if own else {}
    return Aimed([HOLDER], arguments, 0.5 * length_s)


def clashes(mine: Strike, other: Strike, at: Layout) -> bool:
    """An external container takes its network with it, and every rule in there."""
    cut = {node for link in other.links for node in link}
    return at.foreign and not (mine.nodes & set(at.servers)).isdisjoint(cut)


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    failpoints.validate(at, targets, arguments.get("point"))
    data = arguments.get("data", "kept")
    if data not in DATA:
        raise ValueError(f"data {data!r}: choose one of {', '.join(DATA)}")
    if data == "wiped" and at.foreign:
        raise ValueError("the data of external servers must not be deleted")
    if gone := [node for node in targets if node in at.mortal]:
        raise ValueError(f"Docker removes the container of {gone[0]} when it ends (--rm)")
    if data == "wiped" and at.kind.members:
        raise ValueError(
            f"a member of {at.kind.name} that lost its data is refused by the others: see nemesis "
            "membership"
        )


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    lost = " and loses its data" if len(targets) == 1 else " and lose their data"
    words = sentence(targets, "crashes", "crash")
    words += lost if arguments.get("data") == "wiped" else ""
    words += f" at {arguments['point']}" if arguments.get("point") else ""
    return words + (", for good" if arguments.get("back") == "never" else "")


def _majority(away_s: float, at: Layout, random: Random) -> Drawn:
    return Drawn(pick(random, at, "majority"), {}, duration_s=away_s)


FAMILY = Family(
    name="kill",
    what=(
        "kills servers or a client (SIGKILL), a client at a failpoint too, and restarts them, with "
        "their data or without"
    ),
    receipt="the pid is gone; at the end the server serves again",
    make=Kill,
    draw=draw,
    describe=describe,
    strikes=("servers", "clients"),
    targets=TARGETS,
    variants=VARIANTS,
    validate=validate,
    clashes=clashes,
    # A dead holder may keep its lock for ever.
    closing=Closing(lambda at: {}, most=1, takes=1.75, lasts=0.5, place=1, least=12.0),
    aim=Aiming(draw=_aimed),
    points="aimed",
    holder=failpoints.who_comes,
    moment=failpoints.await_failpoint,
    forgets=True,
    colour=Colour("#6d7278", "#9aa0a8"),
    columns=(Column("kill", "crash", "Under crashes", 5),),
    axes=(
        FaultAxis(
            "restart-delay",
            "restart delay",
            "how long a majority of the servers is away "
            "after a crash, with what its persistence keeps",
            TIME_S,
            0.05,
            600,
            _majority,
            LONG,
        ),
    ),
)
