"""Packets are late, lost, doubled or out of order: netem, on what a node sends.

`arguments.kind` is one of KINDS. A kernel without sch_netem cannot do it: then the fault has no
receipt, which says so, and the run is unknown.
"""

from __future__ import annotations

import re
from functools import partial
from random import Random
from typing import Any

from fencepost.nemesis.family import Colour, Family
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.leftover import Leftover
from fencepost.nemesis.nemesis import Fault, Receipt
from fencepost.nemesis.site import Remote, Server, Site
from fencepost.nemesis.targets import PRIMARY, Drawn, Layout, listed, pick

KINDS = {
    "delay": ("delay", "100ms", "50ms"),
    "loss": ("loss", "20%"),
    "duplicate": ("duplicate", "20%"),
    # What is not delayed overtakes what is.
    "reorder": ("delay", "20ms", "reorder", "75%"),
}
TARGETS = ("one", "client", PRIMARY)
# The handle by which a queue is known to be fencepost's own.
HANDLE = "fe9c:"
# What the kernel has put there by itself has the handle 0: and is put there again. Whatever
# somebody has put there has another one, also if it is of the same kind.
_KERNELS = re.compile(r"(qdisc \S+ 0: |$)")
_OURS = re.compile(rf"qdisc netem {HANDLE} (?:dev (\S+) )?root\b")


class Packet:
    def __init__(self, site: Site) -> None:
        self._site = site

    def inject(self, fault: Fault) -> Receipt:
        (node,) = fault.targets
        remote = self._site.remote(node)
        device = self._device(node)
        before = queues(remote, device)
        if not _KERNELS.match(before) and not _OURS.match(before):
            how = (
                f"{device} on {node} has a queue of somebody else's, which is left alone: "
                f"{before}. Packet faults need the kernel's own there: `tc qdisc del dev {device} "
                "root` brings it back"
            )
            return Receipt(False, how)
        words = KINDS[fault.arguments["kind"]]
        add = ["tc", "qdisc", "replace", "dev", device, "root", "handle", HANDLE, "netem", *words]
        done = remote.run(add, check=False)
        if done.code:
            why = done.err.strip()
            lacking = "qdisc kind is unknown" in why or "No such file" in why
            return Receipt(False, "not supported here: no sch_netem" if lacking else why)
        after = queues(remote, device)
        return Receipt(bool(_OURS.match(after)), f"{device} on {node}: {after}", {"queue": after})

    def heal(self, fault: Fault) -> Receipt:
        (node,) = fault.targets
        remote, device = self._site.remote(node), self._device(node)
        clear(remote, device)
        after = queues(remote, device)
        return Receipt(not _OURS.match(after), f"{device} on {node}: {after}", {"queue": after})

    def _device(self, node: str) -> str:
        """The device by which a node reaches the others."""
        other = next(name for name in (*self._site.servers, *self._site.clients) if name != node)
        told = self._site.remote(node).run(["ip", "-o", "route", "get", self._site.address(other)])
        words = told.out.split()
        return words[words.index("dev") + 1]


def queues(remote: Remote, device: str) -> str:
    """What the kernel says of a device's queue."""
    return " ".join(remote.run(["tc", "qdisc", "show", "dev", device, "root"]).out.split())


def clear(remote: Remote, device: str) -> None:
    """Take fencepost's own queue off a device, and nobody else's."""
    if _OURS.match(queues(remote, device)):
        remote.run(["tc", "qdisc", "del", "dev", device, "root"])


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    nodes = pick(random, at, asked.target or random.choice(("one", "client")))
    return [Drawn(nodes, {"kind": asked.variant or random.choice(tuple(KINDS))})]


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    if arguments.get("kind") not in KINDS:
        raise ValueError(f"kind {arguments.get('kind')!r}: choose one of {', '.join(KINDS)}")
    if len(targets) != 1:
        raise ValueError("it strikes one node at a time")


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    kind = str(arguments.get("kind"))
    return f"what {listed(targets)} sends: {' '.join(KINDS.get(kind, (kind,)))}"


def leftovers(remote: Remote, server: Server | None) -> list[Leftover]:
    # A node that was kept up may be of an image that is older than this command.
    listed = remote.run(["bash", "-c", "! command -v tc > /dev/null || tc qdisc show"]).out
    devices = [found[1] for row in listed.splitlines() if (found := _OURS.match(row))]
    return [
        Leftover(
            f"{device} has a queue", f"took {device}'s queue away", partial(clear, remote, device)
        )
        for device in devices
    ]


FAMILY = Family(
    name="packet",
    what="delays, loses, duplicates or reorders packets (netem)",
    receipt="the queue that the kernel shows; without sch_netem there is none, and no receipt",
    make=lambda site, chains: Packet(site),
    draw=draw,
    describe=describe,
    strikes=("servers", "clients"),
    targets=TARGETS,
    variants=tuple(KINDS),
    validate=validate,
    leftovers=leftovers,
    colour=Colour("#b483c2", "#d0a6dc"),
)
