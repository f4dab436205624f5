"""Clock faults: a running server's or client's clock jumps, drifts, strobes, is set right again.

`arguments`: `kind` is one of KINDS below, a jump where nothing is said; `clocks` are `wall`,
`monotonic` or both (what is not named goes on right), the wall clock where nothing is said;
`offset_s` for a jump and a strobe; `rate` for a drift, 1.01 being 1 % fast and 0 standing still;
`period_s` for a strobe: the offset is there for one period and gone for the next.

The means is the process' own vDSO, rewritten on the node (compose/node/vdso.py), whatever
language the program is written in. A jump of the wall clock of a server that was started under
libfaketime is made by libfaketime, which reads an offset from a file at every look at the clock.
Its rates are of no use while a server runs: it multiplies all the time since the server's start.

The receipt is the clock as the process itself shows it (harness/db/kinds.py says which shows
what), in bounds that are narrowed by looking again. A client's monotonic clock times the history,
and skewing it would forge that: only its wall clock can be skewed.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Any

from nemesis import skewed
from nemesis.nemesis import Fault, Receipt
from nemesis.site import Clocked, Hidden, Site
from nemesis.skewed import Proof

CLOCK_FILE = "/run/fencepost/clock"
SKEW_FILE = "/run/fencepost/skew"
KINDS = ("jump", "drift", "strobe", "reset")
CLOCKS = ("wall", "monotonic")


@dataclass(frozen=True)
class Skew:
    """How clocks are off, from now on."""

    kind: str
    clocks: tuple[str, ...]
    offset_s: float = 0.0
    rate: float = 1.0
    period_s: float = 0.0

    @staticmethod
    def of(arguments: dict[str, Any]) -> Skew:
        """From a fault's arguments. ValueError where they make no sense, saying why."""
        skew = Skew(
            arguments.get("kind", "jump"),
            tuple(arguments.get("clocks", ("wall",))),
            float(arguments.get("offset_s", 0.0)),
            float(arguments.get("rate", 1.0)),
            float(arguments.get("period_s", 0.0)),
        )
        if why := skew._senseless():
            raise ValueError(f"clock {skew.kind}: {why}")
        return skew

    def _senseless(self) -> str | None:
        if self.kind not in KINDS:
            return f"there is no such kind; choose one of {', '.join(KINDS)}"
        if not self.clocks or not set(self.clocks) <= set(CLOCKS):
            return f"clocks {', '.join(self.clocks) or 'none'}: choose from {', '.join(CLOCKS)}"
        needed = {"jump": ("offset_s",), "drift": ("rate",), "strobe": ("offset_s", "period_s")}
        given = {"offset_s": self.offset_s, "rate": self.rate - 1, "period_s": self.period_s}
        for name in given:
            if bool(given[name]) != (name in needed.get(self.kind, ())):
                return f"it {'takes no' if given[name] else 'needs'} {name}"
        if not 0 <= self.rate <= 1000 or self.period_s < 0:
            return "rate is from 0 to 1000, and period_s above 0"
        return None

    def at(self, elapsed_s: float) -> float:
        """How far off a clock is, that long after it was set; of a strobe, how far at most."""
        return self.offset_s + elapsed_s * (self.rate - 1)

    def __str__(self) -> str:
        clocks = " and ".join(self.clocks)
        return {
            "jump": f"{clocks} clock set to {self.offset_s:+.3f} s",
            "drift": f"{clocks} clock set to run at {self.rate:g} times its rate",
            "strobe": f"{clocks} clock set to {self.offset_s:+.3f} s and right again, every "
            f"{self.period_s * 1000:g} ms",
            "reset": f"{clocks} clock set right",
        }[self.kind]


def refusal(arguments: dict[str, Any], node: str, shown: tuple[str, ...], client: bool) -> str:
    """Why this fault can not be had of a node whose process shows these clocks; else ''."""
    try:
        skew = Skew.of(arguments)
    except ValueError as error:
        return str(error)
    if client and "monotonic" in skew.clocks:
        return f"{node}: a client's monotonic clock times the history; only its wall clock can skew"
    for clock in skew.clocks:
        if clock not in shown:
            return f"{node} does not show its {clock} clock: nothing could prove that it is off"
    return ""


@dataclass(frozen=True)
class _Set:
    """What was done to a node: how far off its clocks were made, and when."""

    skew: Skew
    since_s: float

    def now_s(self) -> float:
        return self.skew.at(time.monotonic() - self.since_s)


class Clock:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._on: dict[str, _Set] = {}

    def inject(self, fault: Fault) -> Receipt:
        skew = Skew.of(fault.arguments)
        for node in fault.targets:
            client = node in self._site.clients
            why = refusal(fault.arguments, node, self._clocked(node).shown_clocks, client)
            if why:
                return Receipt(False, why)
        return self._each(fault.targets, skew)

    def heal(self, fault: Fault) -> Receipt:
        clocks = tuple(fault.arguments.get("clocks", ("wall",)))
        return self._each(fault.targets, Skew("reset", clocks))

    def _each(self, nodes: list[str], skew: Skew) -> Receipt:
        with ThreadPoolExecutor(len(nodes)) as pool:
            proofs = list(pool.map(lambda node: self._one(node, skew), nodes))
        return skewed.receipt(str(skew), proofs)

    def _one(self, node: str, skew: Skew) -> dict[tuple[str, str], Proof]:
        """Set one node's clocks, and see what they show."""
        process, was = self._clocked(node), self._on.get(node)
        off_s = was.now_s() if was else 0.0
        try:
            marks = {clock: _mark(process, clock) for clock in skew.clocks}
        finally:  # whether or not it can be read, a clock is set right when it is to be
            self._set(node, skew)
        proofs: dict[tuple[str, str], Proof] = {}
        for clock, mark in marks.items():
            if isinstance(mark, Hidden):
                proofs[node, clock] = Proof(None, f"not shown: {mark}")
                continue
            look = skewed.Look(process, clock, mark, off_s if mark else 0.0)
            proofs[node, clock] = _prove(look, skew, abs(off_s))
        return proofs

    def _set(self, node: str, skew: Skew) -> None:
        remote, process = self._site.remote(node), self._clocked(node)
        jump_s = skew.offset_s if skew.kind == "jump" and skew.clocks == ("wall",) else 0.0
        if process.reads_clock_file:
            remote.put(CLOCK_FILE, f"{jump_s:+.6f}\n".encode())
        if skew.kind == "reset" or (jump_s and process.reads_clock_file):
            self._on.pop(node, None)
            # Of every process on the node: a server that was restarted has another pid.
            remote.run(["vdso", "undo"])
        else:
            remote.run(["vdso", "set", str(self._pid(node)), *_options(skew)])
        if skew.kind != "reset":
            self._on[node] = _Set(skew, time.monotonic())

    def _clocked(self, node: str) -> Clocked:
        site = self._site
        return site.client(node) if node in site.clients else site.server(node)

    def _pid(self, node: str) -> int:
        if node in self._site.clients:
            return self._site.client(node).pid
        pid = self._site.server(node).pid()
        if pid is None:
            raise RuntimeError(f"no server was there on {node}")
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
        return process.mark_clock(clock)
    except Hidden as why:
        return why


def _prove(look: skewed.Look, skew: Skew, was_off_s: float) -> Proof:
    if skew.kind == "drift":
        return skewed.drifts(look, skew.rate)
    if skew.kind == "strobe":
        return skewed.strobes(look, skew.offset_s, skew.period_s)
    return skewed.stands(look, skew.offset_s, max(abs(skew.offset_s), was_off_s))


def draw(random: Random, servers: list[str], ttl_s: float) -> tuple[list[str], dict[str, Any]]:
    """One server, forwards or back, by a tenth of the TTL up to ten times as much.

    One in three drifts or strobes instead. Leases of etcd and sessions of ZooKeeper live by the
    monotonic clock, and etcd's by its leader's alone: there all servers jump, with both clocks.
    """
    node = random.choice(servers)
    offset_s = round(random.choice((1, 1, -1)) * ttl_s * 10 ** random.uniform(-1, 1), 3)
    kind = random.choice(("jump", "jump", "jump", "jump", "drift", "strobe"))
    rate = round(2 ** random.uniform(-1, 1), 3)
    period_s = round(10 ** random.uniform(-2, -0.7), 3)
    targets, clocks = [node], ["wall"]
    if node.startswith("zookeeper"):
        clocks = ["wall", "monotonic"]
    if node.startswith("etcd"):
        # What etcd shows is cut off to seconds: too coarse for what comes and goes.
        targets, clocks, kind = servers, ["wall", "monotonic"], "jump"
    arguments: dict[str, Any] = {"kind": kind, "clocks": clocks}
    if kind == "drift":
        arguments["rate"] = rate
    else:
        arguments["offset_s"] = offset_s
    if kind == "strobe":
        arguments["period_s"] = period_s
    whose = "all servers" if len(targets) > 1 else node
    return list(targets), arguments | {"words": f"{whose}: {Skew.of(arguments)}"}
