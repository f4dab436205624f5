"""Power loss: a server's machine loses power, and the server's unsynced data is gone.

A crash by itself loses no written data, because the kernel has it. A server that can lose power
keeps its data on a file system that holds unsynced data separately (defined in node/lazydisk.py),
and can drop it. `targets` lose power together: all are killed before the first drops its data. They
restart when the fault ends.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

from fencepost.nemesis.family import Colour, Column, Family, MachineNeed
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault, Receipt, together
from fencepost.nemesis.restart import NEVER_S, revive, rolling
from fencepost.nemesis.site import Site, ask
from fencepost.nemesis.targets import SERVERS, Drawn, Layout, pick, sentence

TARGETS = (*SERVERS, "rolling")
VARIANTS = ("never",)


class Power:
    """Injects power losses. The receipt is a witness: two files that were written just before, one
    of them synced."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def inject(self, fault: Fault) -> Receipt:
        with ThreadPoolExecutor(len(fault.targets)) as pool:
            seen = list(pool.map(lambda node: self._cut(node, fault.name), fault.targets))
            forgot = pool.map(lambda node: self._forget(node, fault.name), fault.targets)
            return together(
                [
                    _receipt(node, pid, before, after, dropped)
                    for node, (pid, before), (after, dropped) in zip(
                        fault.targets, seen, forgot, strict=True
                    )
                ]
            )

    def heal(self, fault: Fault) -> Receipt:
        return together(revive(self._site, fault.targets, wiped=False))

    def _cut(self, node: str, text: str) -> tuple[int | None, dict[str, bool]]:
        server = self._site.server(node)
        before = self._lazy(node, "witness", server.data, text)
        return server.kill(), before

    def _forget(self, node: str, text: str) -> tuple[dict[str, bool], dict[str, int]]:
        dropped = self._lazy(node, "lose")
        return self._lazy(node, "witnessed", self._site.server(node).data, text), dropped

    def _lazy(self, node: str, *words: str) -> dict[str, Any]:
        return ask(self._site.remote(node), "lazy", *words)


def _receipt(
    node: str,
    pid: int | None,
    before: dict[str, bool],
    after: dict[str, bool],
    dropped: dict[str, int],
) -> Receipt:
    """Return the receipt, proved if both files had existed and only the synced one is left."""
    both = before == {"synced": True, "unsynced": True}
    lost = after == {"synced": True, "unsynced": False}
    what = {
        (True, False): "the synced file exists, the unsynced one is gone",
        (True, True): "the unsynced file is still there too",
        (False, False): "the synced file is gone too",
        (False, True): "the synced file is gone, but the unsynced one exists",
    }[after["synced"], after["unsynced"]]
    how = (
        f"pid {pid} on {node} is gone; {what}: {dropped['bytes']} bytes in {dropped['files']} "
        f"files and {dropped['names']} changes of names were lost"
    )
    if pid is None:
        how = f"no server was running on {node}"
    return Receipt(pid is not None and both and lost, how, {"pid": pid, "dropped": dropped})


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    """Draw one server by default; a lock on several survives the loss of a minority."""
    target = asked.target or "one"
    if target == "rolling":
        return rolling(at, lambda nodes, after_s: Drawn(nodes, {}, after_s, at.restart_s))
    nodes = pick(random, at, target)
    if asked.variant == "never":
        return [Drawn(nodes, {"back": "never"}, duration_s=NEVER_S)]
    return [Drawn(nodes, {}, duration_s=at.restart_s)]


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    never = ", for good" if arguments.get("back") == "never" else ""
    return f"{sentence(targets, 'loses', 'lose')} power{never}"


def _machine() -> tuple[bool, str]:
    there = Path("/dev/fuse").exists()
    otherwise = "no /dev/fuse, so no `power` faults: load it (`modprobe fuse`)"
    return there, "/dev/fuse" if there else otherwise


FAMILY = Family(
    name="power",
    what="servers lose power, and all unsynced data",
    receipt="of two files on the server's disk, the synced one is left and the other is gone",
    make=lambda site, chains: Power(site),
    draw=draw,
    describe=describe,
    targets=TARGETS,
    variants=VARIANTS,
    needs={"DISK": "lazy"},
    mounts=True,
    machine=MachineNeed("file systems in user space", _machine),
    forgets=True,
    ours_alone="it needs fencepost's own disk under the server's data",
    colour=Colour("#3f444a", "#c3c8ce"),
    columns=(Column("power", "power loss", "Under losses of power", 6),),
)
