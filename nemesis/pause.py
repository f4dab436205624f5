"""Pauses: SIGSTOP and SIGCONT, of a server or of a client.

A garbage collector, a hypervisor and an operator do this to real processes. A client can be stopped
at a failpoint of its code (`arguments.point`, see failpoints.py). With `arguments.until`
`other-holds` the pause lasts until another client was granted the lock, or for its scheduled
duration if none was.

With `arguments.threads` `renewal` only the client's threads that renew its leases are stopped: it
keeps working while its lease expires.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
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
    named_point,
    past_its_lease_s,
    until_s,
)
from fencepost.nemesis.aiming import SHORT as SHORT_HOLD
from fencepost.nemesis.axis import SHORT, FaultAxis
from fencepost.nemesis.family import Closing, Colour, Column, Family
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault, Leftover, Receipt, together
from fencepost.nemesis.site import PROCESSES, Client, Remote, Server, Site
from fencepost.nemesis.targets import HOLDER, SERVERS, Drawn, Layout, listed, pick, sentence
from fencepost.nemesis.turns import deal, one_in
from fencepost.setting import TIME_S

UNTIL = "other-holds"
RENEWAL = "renewal"
TARGETS = ("server", *SERVERS, "client", HOLDER)
VARIANTS = (*failpoints.ALL_FAILPOINTS, UNTIL, RENEWAL)

_STATE_S = 10.0


class Pause:
    def __init__(self, site: Site) -> None:
        self._site = site

    def inject(self, fault: Fault) -> Receipt:
        return together([self._stop(node, fault) for node in fault.targets])

    def _stop(self, node: str, fault: Fault) -> Receipt:
        if node not in self._site.clients:
            return self._state(node, self._site.server(node).pause(), stopped=True)
        client = self._site.client(node)
        if fault.arguments.get("threads"):
            return self._threads("hold", node, client)
        there = failpoints.reached(client, fault)
        for _ in range(PROCESSES):
            pid = client.pid
            if not there:
                self._site.remote(node).signal(pid, signal.SIGSTOP, client.started)
            receipt = self._state(node, pid, stopped=True)
            if receipt.proved or client.pid == pid:
                break
        at = failpoints.where(fault, there)
        data = receipt.data | {"process": client.process, "at": at}
        return Receipt(receipt.proved, f"{receipt.how}, {at}", data)

    def heal(self, fault: Fault) -> Receipt:
        return together([self._go_on(node, fault) for node in fault.targets])

    def _go_on(self, node: str, fault: Fault) -> Receipt:
        if node not in self._site.clients:
            return self._state(node, self._site.server(node).resume(), stopped=False)
        client = self._site.client(node)
        if fault.arguments.get("threads"):
            return self._threads("go", node, client)
        client.leave_failpoint()
        self._site.remote(node).signal(client.pid, signal.SIGCONT, client.started)
        found = self._state(
            node, client.pid, stopped=False, elsewhere=lambda: client.at_point or ""
        )
        if not found.proved and found.data.get("state", "") is None:
            # A process that finds its lease over may end as soon as it is resumed.
            how = f"pid {client.pid} on {node} has ended, and is no longer stopped"
            return Receipt(True, how, found.data)
        return found

    def _threads(self, verb: str, node: str, client: Client) -> Receipt:
        """Stop the threads that renew, or resume them; the main one must keep running in any
        case."""
        remote = self._site.remote(node)
        if remote.state(client.pid, client.started) is None:
            # Its threads ended with it.
            return Receipt(verb == "go", f"pid {client.pid} on {node} is gone", {"pid": client.pid})
        words = ["fencepost-node", "threads", verb, str(client.pid)]
        result = remote.run(words, check=False)
        if result.code:
            return Receipt(False, f"{node}: {result.err.strip()}", {"pid": client.pid})
        seen: dict[str, Any] = json.loads(result.out)
        held = [thread["state"] == "t" for thread in seen["threads"]]
        right = not any(held) if verb == "go" else bool(held) and all(held)
        rows = ", ".join(f"{row['tid']} ({row['name']}): {row['state']}" for row in seen["threads"])
        how = f"of pid {client.pid} on {node}, threads {rows or 'none'}; main: {seen['main']}"
        data = {"pid": client.pid, "process": client.process, **seen}
        return Receipt(right and (verb == "go" or seen["main"] not in "tT"), how, data)

    def _state(
        self,
        node: str,
        pid: int | None,
        stopped: bool,
        elsewhere: Callable[[], str] = lambda: "",
    ) -> Receipt:
        """Return the receipt of a state. `elsewhere`: a later failpoint at which it has stopped,
        which proves that it was resumed."""
        if pid is None:
            return Receipt(False, f"no process was running on {node}")
        end = time.monotonic() + _STATE_S
        remote = self._site.remote(node)
        while ((state := remote.state(pid)) == "T") != stopped and time.monotonic() < end:
            if state is None:
                break  # it has ended
            if point := elsewhere():
                how = f"pid {pid} on {node} continued to {point}"
                return Receipt(True, how, {"pid": pid, "state": state})
            time.sleep(0.002)
        right = state is not None and (state == "T") == stopped
        return Receipt(
            right, f"pid {pid} on {node} is in state {state}", {"pid": pid, "state": state}
        )


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    """Draw a client twice as often as a server, and a client mostly at a failpoint. Three times of
    four this is one of the lock's own code, if it has any: the client that holds the lock and is
    about to reach it is stopped until another holds the lock, or for longer than its lease. Then
    its earlier check no longer holds."""
    target = asked.target
    if not target:
        server = one_in(random, "server", 3) and not asked.variant
        target = "server" if server else "client"
    nodes = pick(random, at, target)
    if not set(nodes) <= {*at.clients, HOLDER}:
        # A variant is for clients only, which `validate` reports.
        which = {UNTIL: "until", RENEWAL: "threads"}.get(asked.variant, "point")
        return [Drawn(nodes, {which: asked.variant} if asked.variant else {})]
    if asked.variant == RENEWAL:
        return [Drawn(nodes, {"threads": RENEWAL}, duration_s=past_its_lease_s(random, at))]
    anywhere = (*failpoints.FAILPOINTS, None)
    # Where most pauses are at the lock's own failpoints, a turn would mostly pass unused.
    point = random.choice(anywhere) if at.failpoints else deal(random, "point", anywhere)
    if at.failpoints and not asked.variant and random.random() < 0.75:
        own = {"point": random.choice(at.failpoints)}
        until = {"until": UNTIL} if random.random() < 0.5 else {}
        nodes = [HOLDER] if target == "client" else nodes
        return [Drawn(nodes, own | until, duration_s=past_its_lease_s(random, at))]
    if asked.variant == UNTIL:
        arguments = {"point": "acquired", "until": UNTIL}
        return [Drawn(nodes, arguments, duration_s=4 * at.ttl_s)]
    return [Drawn(nodes, {"point": asked.variant or point})]


def _aimed(
    random: Random, at: Layout, asked: Asked, length_s: float, points: Points
) -> Aimed | None:
    """Stop only the threads that renew the holder's lease; or the holder, anywhere, or where its
    lock's code checks before it acts."""
    if point := named_point(asked):
        return _at_point(random, at, point)
    if not any_client(asked):
        return None
    if asked.target and random.random() > HOLDERS:
        lasts_s = past_its_lease_s(random, at)
        return Aimed([random.choice(at.clients)], {}, lasts_s)
    if not asked.target and random.random() >= 0.7:
        return None
    if at.renews and random.random() < 0.4:
        return Aimed([HOLDER], {"threads": RENEWAL}, past_its_lease_s(random, at))
    if at.failpoints and random.random() < 0.75:
        there = (*at.failpoints, *(("before-write",) if at.stores else ()))
        return _at_point(random, at, points.next(there, OFTEN))
    return Aimed([HOLDER], {"point": None, "until": UNTIL}, until_s(at), until_grant=True)


def _at_point(random: Random, at: Layout, point: str) -> Aimed:
    """Half of these pauses end as soon as another client holds the lock: a request that is sent
    later may find its own lease over. Half of those at a reply end before the lease does: its
    client may count on a longer one than the servers gave."""
    arguments = {"point": point}
    if point in failpoints.REPLIES and random.random() < 0.5:
        return Aimed([HOLDER], arguments, random.uniform(*SHORT_HOLD) * at.ttl_s)
    if random.random() < 0.5:
        return Aimed([HOLDER], arguments | {"until": UNTIL}, until_s(at), until_grant=True)
    return Aimed([HOLDER], arguments, past_its_lease_s(random, at))


def _closing(at: Layout) -> dict[str, Any] | None:
    """Stop a holder at its lock's own failpoint: after that it acts on an outdated check."""
    return {"point": at.failpoints[0], "until": UNTIL} if at.failpoints else None


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    point, until, threads = (arguments.get(name) for name in ("point", "until", "threads"))
    servers = [node for node in targets if node not in (*at.clients, HOLDER)]
    if until not in (None, UNTIL):
        raise ValueError(f"until {until!r}: there is only {UNTIL}")
    if threads not in (None, RENEWAL):
        raise ValueError(f"threads {threads!r}: there is only {RENEWAL}")
    if servers and (point or until or threads):
        words = f"failpoints, {UNTIL} and {RENEWAL} are for clients"
        raise ValueError(f"{servers[0]} is a server: {words}")
    failpoints.validate(at, targets, point)
    if threads and point is not None:
        raise ValueError(f"a client is stopped at a failpoint as a whole, not its {RENEWAL} alone")
    if threads and at.renews is False:
        raise ValueError(
            f"{RENEWAL}: no thread of this lock's clients renews a lease; leave it out, or choose "
            "another option of the lock: `fencepost locks LOCK` shows them"
        )


def held(site: Site, fault: Fault) -> Callable[[], bool] | None:
    """Return a function that tells whether a fault may end early, or None."""
    if fault.arguments.get("until") != UNTIL:
        return None
    (node,) = fault.targets
    before = site.grants(without=node)
    return lambda: site.grants(without=node) > before


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    point, until = arguments.get("point"), arguments.get("until")
    where = f" at {point}" if point else ""
    until_when = " until another holds the lock" if until else ""
    if arguments.get("threads"):
        renewal = "the threads that renew leases are"
        return f"{renewal} paused on {listed(targets)}{until_when}"
    return f"{sentence(targets, 'is', 'are')} paused{where}{until_when}"


def leftovers(remote: Remote, server: Server | None) -> list[Leftover]:
    pid = server.pid() if server else None
    if server is None or pid is None or remote.state(pid) != "T":
        return []
    what = f"its server is stopped (pid {pid})"
    return [Leftover(what, f"resumed its stopped server (pid {pid})", server.resume)]


def _before_write(lasts_s: float, at: Layout, random: Random) -> Drawn:
    return Drawn(pick(random, at, "client"), {"point": "before-write"}, duration_s=lasts_s)


FAMILY = Family(
    name="pause",
    what=(
        "stops servers (SIGSTOP), or a client at a failpoint or until another holds the lock, "
        "or only its threads that renew leases"
    ),
    receipt="the process is in state T, and at the end it is not; of renewal, the threads in state "
    "t and the main one in another",
    make=lambda site, chains: Pause(site),
    draw=draw,
    describe=describe,
    strikes=("servers", "clients"),
    targets=TARGETS,
    variants=VARIANTS,
    validate=validate,
    # In one of three, no client reaches the failpoint in time, or its effect is not seen.
    closing=Closing(_closing, most=3, takes=4.0, lasts=2.0, place=2),
    aim=Aiming(draw=_aimed, until_grant={"until": UNTIL}),
    meets=lambda asked: asked.target in SERVERS,
    points="aimed",
    holder=failpoints.who_comes,
    moment=failpoints.await_failpoint,
    over=held,
    leftovers=leftovers,
    stops=lambda targets, arguments: [] if arguments.get("threads") else targets,
    colour=Colour("#7d9a3c", "#a3c25e"),
    columns=(
        Column("pause:client", "client pause", "Under client pauses", 1),
        Column("pause:server", "server pause", "Under server pauses", 2),
    ),
    axes=(
        FaultAxis(
            "pause",
            "pause",
            "how long a client is paused, right before it writes under its hold",
            TIME_S,
            0.05,
            600,
            _before_write,
            SHORT,
        ),
    ),
)
