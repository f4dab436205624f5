"""Clock faults: the clock of a running server or client jumps, drifts or strobes, and is set right.

`arguments`: `kind` is one of KINDS (skew.py), by default a jump; `clocks` are `wall`, `monotonic`
or both (others stay right), by default the wall clock; `offset_s` for a jump and a strobe; `rate`
for a drift, 1.01 being 1 % fast and 0 standing still; `period_s` for a strobe: the offset applies
in every other period.

It rewrites the process' own vDSO on the node (node/vdso.py), whatever language the program is
written in. For a server that was started under libfaketime, libfaketime makes a jump of the wall
clock: it reads an offset from a file at every clock reading. Its rates cannot be used on a running
server, because they multiply all the time since the server's start.

A monotonic clock that is ahead when a fault ends stays ahead, at the right rate, until its process
ends: a monotonic clock must not go back, and timers of a Go or Java server would stop for as long.
Later faults add to it.

The receipt is the clock as the process itself shows it (harness/servers/kinds.py defines which
clocks it shows), in bounds that are narrowed by repeated readings. A client's monotonic clock times
the history, and skewing it would forge that: only its wall clock can be skewed.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from fencepost.nemesis import skewed
from fencepost.nemesis.aiming import Aimed, Aiming, Points
from fencepost.nemesis.clock_axes import AXES
from fencepost.nemesis.family import Colour, Column, Family, MachineNeed, Strike
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault, Leftover, Receipt
from fencepost.nemesis.site import Clocked, Hidden, Remote, Server, Site, ask
from fencepost.nemesis.skew import CLOCKS, KINDS, Skew
from fencepost.nemesis.skewed import Proof
from fencepost.nemesis.targets import PRIMARY, SERVERS, Drawn, Layout, listed, pick
from fencepost.nemesis.turns import deal
from fencepost.times import seconds

CLOCK_FILE = "/run/fencepost/clock"
SKEW_FILE = "/run/fencepost/skew"
TARGETS = (*SERVERS, "client", "clients")
MONOTONIC = "monotonic"
# Machine types on which it can rewrite the vDSO.
_MACHINES = ("x86_64", "aarch64")


def must_show(arguments: dict[str, Any], node: str, shown: Sequence[str], client: bool) -> None:
    """Raise ValueError if a node whose process shows these clocks cannot have this fault."""
    skew = Skew.of(arguments)
    if client and "monotonic" in skew.clocks:
        raise ValueError(
            f"{node}: a client's monotonic clock times the history; only its wall clock can skew"
        )
    for clock in skew.clocks:
        if clock not in shown:
            raise ValueError(
                f"{node} does not show its {clock} clock: nothing could prove that it is off"
            )


class Clock:
    def __init__(self, site: Site) -> None:
        self._site = site

    def inject(self, fault: Fault) -> Receipt:
        skew = Skew.of(fault.arguments)
        for node in fault.targets:
            client = node in self._site.clients
            try:
                must_show(fault.arguments, node, self._clocked(node).shown_clocks, client)
            except ValueError as error:
                return Receipt(False, str(error))
        return self._each(fault.targets, skew, abs(skew.offset_s))

    def heal(self, fault: Fault) -> Receipt:
        clocks = tuple(fault.arguments.get("clocks", ("wall",)))
        step_s = abs(fault.arguments.get("offset_s", 0.0))
        return self._each(fault.targets, Skew("reset", clocks), step_s)

    def _each(self, nodes: list[str], skew: Skew, step_s: float) -> Receipt:
        with ThreadPoolExecutor(len(nodes)) as pool:
            proofs = list(pool.map(lambda node: self._one(node, skew, step_s), nodes))
        return skewed.receipt(str(skew), proofs)

    def _one(self, node: str, skew: Skew, step_s: float) -> dict[tuple[str, str], Proof]:
        """Set one node's clocks, some step away, and read them back."""
        process = self._clocked(node)
        ahead_s = 0.0
        try:
            marks = {clock: _mark(process, clock) for clock in skew.clocks}
            # Only for a change, or if it was off before, because it takes some ms.
            off_s = self._offsets(node) if any(marks.values()) or skew.kind == "reset" else {}
        finally:  # a clock that cannot be read is set all the same
            ahead_s = self._set(node, skew)
        proofs: dict[tuple[str, str], Proof] = {}
        for clock, mark in marks.items():
            if isinstance(mark, Hidden):
                proofs[node, clock] = Proof(None, f"not shown: {mark}")
                continue
            look = skewed.Look(process, clock, mark, off_s.get(clock, 0.0) if mark else 0.0)
            wanted_s = skew.offset_s + (ahead_s if clock == "monotonic" else 0.0)
            proof = _prove(look, skew, wanted_s, max(step_s, abs(off_s.get(clock, 0.0))))
            if skew.kind == "reset" and wanted_s:
                proof = replace(proof, seen=f"{proof.seen}, and stays ahead by that")
            proofs[node, clock] = proof
        return proofs

    def _offsets(self, node: str) -> dict[str, float]:
        """Return the current offsets of the node's clocks, in seconds."""
        pid = self._pid(node)
        offsets = self._vdso(node, "show", str(pid))["offset_ns"][str(pid)]
        return {clock: offset_ns / 1e9 for clock, offset_ns in offsets.items()}

    def _set(self, node: str, skew: Skew) -> float:
        """Set a node's clocks; return how far its monotonic clock had been ahead and stays, in
        seconds."""
        remote, process = self._site.remote(node), self._clocked(node)
        jump_s = skew.offset_s if skew.kind == "jump" and skew.clocks == ("wall",) else 0.0
        if process.reads_clock_file:
            remote.put(CLOCK_FILE, f"{jump_s:+.6f}\n".encode())
        if skew.kind == "reset" or (jump_s and process.reads_clock_file):
            # Every process on the node, because a restarted server has another pid.
            left = self._vdso(node, "rest")["offset_ns"].values()
            ahead_ns = max((offsets.get("monotonic", 0) for offsets in left), default=0)
        else:
            ahead_ns = self._vdso(node, "set", str(self._pid(node)), *_options(skew))["ahead_ns"]
        return float(ahead_ns) / 1e9

    def _vdso(self, node: str, *arguments: str) -> dict[str, Any]:
        return ask(self._site.remote(node), "vdso", *arguments)

    def _clocked(self, node: str) -> Clocked:
        site = self._site
        return site.client(node) if node in site.clients else site.server(node)

    def _pid(self, node: str) -> int:
        if node in self._site.clients:
            return self._site.client(node).pid
        pid = self._site.server(node).pid()
        if pid is None:
            raise RuntimeError(f"no server was running on {node}")
        return pid


def _options(skew: Skew) -> list[str]:
    return [
        "--clocks", ",".join(skew.clocks),
        "--offset-ns", str(round(skew.offset_s * 1e9)),
        "--rate", repr(skew.rate),
        "--period-ns", str(round(skew.period_s * 1e9)),
    ]  # fmt: skip


def _mark(process: Clocked, clock: str) -> dict[str, Any] | Hidden:
    try:
        try:
            return process.mark_clock(clock)
        except Hidden:
            raise
        except Exception:  # a busy server may answer the next time; otherwise this is raised
            return process.mark_clock(clock)
    except Hidden as why:
        return why


def _prove(look: skewed.Look, skew: Skew, wanted_s: float, step_s: float) -> Proof:
    if skew.kind == "drift":
        return skewed.drifts(look, skew.rate)
    if skew.kind == "strobe":
        return skewed.strobes(look, skew.offset_s, skew.period_s)
    return skewed.stands(look, wanted_s, step_s)


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    """Draw a server, or several, forwards or back, by a tenth of the TTL up to ten times as much.

    One in three drifts or strobes instead. It is the wall clock: programs rightly rely on the
    monotonic one, for leases of etcd and sessions of ZooKeeper, because nothing sets it on a real
    machine. `monotonic` moves it all the same, only ahead, together with the wall clock. Leases of
    etcd follow its leader's clock: there all servers jump.

    A server jumps ahead twice as often as back, because that ends leases. A client jumps either way
    as often: it ends leases early if it sets their ends by its own clock and is behind.
    """
    monotonic = asked.variant == MONOTONIC
    servers = at.servers
    node = random.choice(servers)
    offset_s = round(random.choice((1, 1, -1)) * at.ttl_s * 10 ** random.uniform(-1, 1), 3)
    kind = deal(random, "kind", ("jump", "jump", "jump", "jump", "drift", "strobe"))
    rate = round(2 ** (random.choice((1, -1)) * random.uniform(0.1, 1)), 3)
    period_s = round(10 ** random.uniform(-2, -0.7), 3)
    targets, clocks = [node], ["wall"]
    if random.random() < 0.25:
        others = random.sample(servers, random.randint(1, len(servers)))
        targets = [node, *(other for other in others if other != node)]
    if at.kind.leader_leases:
        targets = list(servers)
    if asked.target:
        targets = pick(random, at, asked.target)
    of_clients = set(targets) <= set(at.clients)
    if of_clients:
        offset_s = abs(offset_s) * random.choice((1, -1))
    if asked.variant in KINDS:
        kind = asked.variant
    elif monotonic:
        clocks, kind, offset_s = ["wall", "monotonic"], "jump", abs(offset_s)
    elif asked.variant:
        kind, offset_s = "jump", offset(asked.variant)
    if at.kind.grain_s >= 1 and not of_clients:
        # Its servers show whole seconds: too coarse for a strobe.
        kind = "jump"
    arguments: dict[str, Any] = {"kind": kind, "clocks": clocks}
    if kind == "drift":
        arguments["rate"] = rate
    elif kind != "reset":
        arguments["offset_s"] = offset_s
    if kind == "strobe":
        arguments["period_s"] = period_s
    return [Drawn(list(targets), arguments)]


def _aimed(
    random: Random, at: Layout, asked: Asked, length_s: float, points: Points
) -> Aimed | None:
    """Let a majority of the servers jump, if leases end by their wall clocks."""
    if at.kind.lease_clock == "wall" and not (asked.target or asked.variant):
        some = random.sample(at.servers, len(at.servers) // 2 + 1)
        return Aimed(some, _ahead(random, at), 1.2 * at.ttl_s, until_grant=True)
    (drawn,) = draw(random, at, asked)
    if set(drawn.targets) <= set(at.clients):
        # It must be granted the lock meanwhile.
        return Aimed(drawn.targets, drawn.arguments, random.uniform(2, 5) * at.ttl_s)
    return Aimed(drawn.targets, drawn.arguments, length_s, until_grant=True)


def _forget(random: Random, at: Layout, asked: Asked, server: str) -> Drawn | None:
    return Drawn([server], _ahead(random, at)) if asked.variant in ("", "jump") else None


def _ahead(random: Random, at: Layout) -> dict[str, Any]:
    """Return a jump of a wall clock that ends all leases by it, and soon none after it is set
    right."""
    offset_s = round(random.uniform(1.05, 1.6) * at.ttl_s, 3)
    return {"kind": "jump", "clocks": ["wall"], "offset_s": offset_s}


def offset(text: str) -> float:
    """Parse an offset like +3600s, -500ms or +1h in seconds. ValueError if it is malformed."""
    if text[:1] not in ("+", "-"):
        known = ", ".join((*KINDS[:-1], MONOTONIC))
        raise ValueError(f"{text!r}: choose one of {known}, or write +5s or -500ms")
    return seconds(text[1:]) * (-1 if text[0] == "-" else 1)


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    for node in at.servers[:1] if targets == [PRIMARY] else targets:
        must_show(arguments, node, at.shown.get(node, CLOCKS), node in at.clients)


def clashes(mine: Strike, other: Strike, at: Layout) -> bool:
    """Return whether the server is cut off from the others, and so serves no request and shows no
    clock."""
    servers = frozenset(at.servers)
    cut_off = {node for link in other.links if link <= servers for node in link}
    return at.leads and not mine.nodes.isdisjoint(cut_off)


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    return f"{listed(targets)}: {Skew.of(arguments)}"


def leftovers(remote: Remote, server: Server | None) -> list[Leftover]:
    return [*_skewed(remote, server), *(_file_is_off(remote) if server else [])]


def _skewed(remote: Remote, server: Server | None) -> list[Leftover]:
    output = remote.run(["fencepost-node", "vdso", "show"]).out
    skewed = json.loads(output or "{}")
    offsets = skewed.get("offset_ns", {})
    undo = partial(remote.run, ["fencepost-node", "vdso", "undo"])
    if not offsets and not skewed.get("kept"):
        return []
    if not offsets:
        # Its process is gone: the skew applies to the next one.
        return [Leftover("a skew is left for its next process", "removed the leftover skew", undo)]
    what = f"the clocks of {len(offsets)} process(es) are skewed"
    undone = f"set the clocks of {len(offsets)} process(es) right"
    if server is None or not any(clocks.get("monotonic", 0) > 0 for clocks in offsets.values()):
        return [Leftover(what, undone, undo)]

    def undo_and_end() -> None:
        undo()
        server.kill()

    # No server survives a monotonic clock that goes back. It is restarted like any that is down.
    return [Leftover(what, f"{undone}, and ended its server", undo_and_end)]


def _file_is_off(remote: Remote) -> list[Leftover]:
    if remote.run(["cat", CLOCK_FILE], check=False).out.strip() in ("", "+0", "+0.000000"):
        return []
    right = partial(remote.put, CLOCK_FILE, b"+0\n")
    return [Leftover("its server's clock is off", "set its server's clock right", right)]


def _machine() -> tuple[bool, str]:
    name = platform.machine()
    there = name in _MACHINES
    return there, name if there else f"{name}: clock faults only for Redis"


FAMILY = Family(
    name="clock",
    what="makes clocks of servers and clients jump, drift or strobe",
    receipt="the clock that the server or client itself shows",
    make=lambda site, chains: Clock(site),
    draw=draw,
    describe=describe,
    strikes=("servers", "clients"),
    targets=TARGETS,
    variants=("jump", "drift", "strobe", MONOTONIC, "+OFFSET", "-OFFSET"),
    validate=validate,
    clashes=clashes,
    aim=Aiming(draw=_aimed, forget=_forget),
    needs={"CLOCK": "fake"},
    machine=MachineNeed(" or ".join(_MACHINES), _machine),
    leftovers=leftovers,
    files=(CLOCK_FILE, SKEW_FILE, f"{SKEW_FILE}.lock"),
    impairs=lambda targets, arguments: [],  # it answers, but wrongly
    forgets=True,
    colour=Colour("#1f9d94", "#45c4ba"),
    columns=(Column("clock", "clock", "Under clock faults", 4),),
    axes=AXES,
)
