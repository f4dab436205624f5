"""CPU starvation: a kernel quota for a server, `arguments.share` of one CPU.

A noisy neighbour, or a container's limit, does this to real servers: they run for some milliseconds
and then stall for longer, repeatedly.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from fencepost.nemesis.family import Colour, Family, MachineNeed
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault, Leftover, Receipt, together
from fencepost.nemesis.site import Remote, Server, Site, ask
from fencepost.nemesis.targets import SERVERS, Drawn, Layout, pick, sentence

SHARE = 0.02
TARGETS = SERVERS


class Cpu:
    def __init__(self, site: Site) -> None:
        self._site = site

    def inject(self, fault: Fault) -> Receipt:
        share = float(fault.arguments.get("share", SHARE))
        return together([self._limit(node, share) for node in fault.targets])

    def _limit(self, node: str, share: float) -> Receipt:
        pid = self._site.server(node).pid()
        if pid is None:
            return Receipt(False, f"no server was running on {node}")
        limited = self._cpu(node, "limit", str(pid), repr(share))
        seen = self._cpu(node, "show", str(pid))
        bites = seen["share"] is not None and limited["throttled"] > 0
        how = (
            f"pid {pid} on {node} is in {seen['cgroup']}, which has {_quota(seen['share'])}; a "
            f"loop there was throttled {limited['throttled']} times"
        )
        return Receipt(bites, how, {"pid": pid} | seen)

    def heal(self, fault: Fault) -> Receipt:
        return together([self._free(node) for node in fault.targets])

    def _free(self, node: str) -> Receipt:
        pid = self._site.server(node).pid()
        before = self._cpu(node, "show", str(pid)) if pid is not None else {"throttled": 0}
        self._cpu(node, "free")
        if pid is None:
            return Receipt(False, f"no server was running on {node}")
        seen = self._cpu(node, "show", str(pid))
        how = (
            f"pid {pid} on {node} is in {seen['cgroup']}, which has {_quota(seen['share'])}; it "
            f"had been throttled {before['throttled']} times"
        )
        return Receipt(seen["share"] is None, how, {"pid": pid} | seen)

    def _cpu(self, node: str, *words: str) -> dict[str, Any]:
        return ask(self._site.remote(node), "cpu", *words)


def _quota(share: float | None) -> str:
    return "no quota" if share is None else f"a quota of {share:.1%} of a CPU"


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    return [Drawn(pick(random, at, asked.target or "one"), {"share": SHARE})]


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    share = arguments.get("share", SHARE)
    if not isinstance(share, int | float) or not 0.01 <= share <= 1:
        raise ValueError(f"a CPU share of {share!r} is out of range (0.01 to 1)")


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    return f"{sentence(targets, 'has', 'have')} {arguments.get('share', SHARE):.0%} of a CPU"


def leftovers(remote: Remote, server: Server | None) -> list[Leftover]:
    output = remote.run(["fencepost-node", "cpu", "left"]).out
    if '"left": true' not in output:
        return []
    free = partial(remote.run, ["fencepost-node", "cpu", "free"])
    return [Leftover("its server has a CPU quota", "removed its server's CPU quota", free)]


def _machine() -> tuple[bool, str]:
    root = Path("/sys/fs/cgroup")
    there = (root / "cgroup.controllers").is_file() or (root / "cpu").is_dir()
    return there, "cgroups" if there else "this kernel cannot limit CPU time, so no `cpu` faults"


FAMILY = Family(
    name="cpu",
    what="limits a server to very little CPU time, by a cgroup's quota",
    receipt="the quota of the cgroup that the server is in, which throttles a loop there",
    make=lambda site, chains: Cpu(site),
    draw=draw,
    describe=describe,
    targets=TARGETS,
    validate=validate,
    mounts=True,
    machine=MachineNeed("cgroups", _machine),
    leftovers=leftovers,
    ours_alone="it changes the cgroup of the server's container",
    colour=Colour("#5f8894", "#8db4c0"),
)
