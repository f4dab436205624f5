"""Packet faults: delayed, lost, duplicated or reordered by netem, on a node's outgoing packets.

`arguments.kind` is one of KINDS. Where the kernel has no sch_netem, iptables loses the packets at
their receivers instead (xt_statistic). The other kinds are not drawn there. One that is requested
has no receipt, which says so, and the run's verdict is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from fencepost.nemesis import iptables
from fencepost.nemesis.aiming import PAST, SHORT, Aimed, Aiming, Lengths, Points
from fencepost.nemesis.chains import Chains
from fencepost.nemesis.family import Colour, Family
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.iptables import Rule
from fencepost.nemesis.nemesis import Fault, Leftover, Receipt
from fencepost.nemesis.site import Remote, Result, Server, Site
from fencepost.nemesis.targets import HOLDER, PRIMARY, STORAGE, Drawn, Layout, listed, pick
from fencepost.nemesis.turns import deal

LOST, HEAVY = 0.3, 0.9
"""The parts of the packets that are lost. TCP sends a lost packet again within 200 ms: at 30 % a
request is late, and at 90 % its client sees a timeout."""
_PROBES = 60
"""How many datagrams are sent at most to see that one is lost: at 30 %, a lossy node passes all of
them once in two billion times."""
KINDS = {
    "delay": ("delay", "100ms", "50ms"),
    "loss": ("loss",),
    "duplicate": ("duplicate", "20%"),
    # Packets without the delay overtake the others.
    "reorder": ("delay", "20ms", "reorder", "75%"),
}
TARGETS = ("one", "client", PRIMARY)
_LOOPBACK = "lo"
# The handle that identifies fencepost's own queue.
HANDLE = "fe9c:"
# The kernel's default queue has the handle 0, and is restored. Any other program's queue has
# another handle, even if it is of the same kind.
_KERNELS = re.compile(r"(qdisc \S+ 0: |$)")
_OURS = re.compile(rf"qdisc netem {HANDLE} (?:dev (\S+) )?root\b")


class Packet:
    def __init__(self, site: Site, chains: Chains) -> None:
        self._site = site
        self._chains = chains
        self._by_rules: set[str] = set()

    def inject(self, fault: Fault) -> Receipt:
        (node,) = fault.targets
        remote = self._site.remote(node)
        device = self._device(node)
        before = queues(remote, device)
        if not _KERNELS.match(before) and not _OURS.match(before):
            how = (
                f"{device} on {node} has a queue of another program, which must not be changed: "
                f"{before}. Packet faults need the kernel's own there: `tc qdisc del dev {device} "
                "root` restores it"
            )
            return Receipt(False, how)
        words = _words(fault.arguments)
        done = _queue(remote, "replace", device, words)
        if done.code:
            lacking = _lacking(done)
            if lacking and fault.arguments["kind"] == "loss":
                return self._lose(fault, node)
            return Receipt(
                False, "not supported here: no sch_netem" if lacking else done.err.strip()
            )
        after = queues(remote, device)
        if fault.arguments["kind"] == "loss":
            self._chains.loses(fault.name, node)
        return Receipt(bool(_OURS.match(after)), f"{device} on {node}: {after}", {"queue": after})

    def heal(self, fault: Fault) -> Receipt:
        (node,) = fault.targets
        if fault.name in self._by_rules:
            return self._lose_no_more(fault, node)
        remote, device = self._site.remote(node), self._device(node)
        clear(remote, device)
        self._chains.remove(fault.name)
        after = queues(remote, device)
        return Receipt(not _OURS.match(after), f"{device} on {node}: {after}", {"queue": after})

    def _lose(self, fault: Fault, node: str) -> Receipt:
        """Lose a part of a node's packets, at all nodes that it may send to."""
        self._by_rules.add(fault.name)
        share = _share(fault.arguments)
        rule = Rule("IN", self._site.address(node), share=share)
        others = [name for name in self._all() if name != node]
        self._chains.add(fault.name, {name: [rule] for name in others})
        self._chains.loses(fault.name, node)
        there = [name for name in others if rule in self._chains.hits(name)]
        how = f"iptables loses {share:.0%} of {node}'s packets at {len(there)} of "
        return Receipt(there == others, f"{how}{len(others)} nodes (no sch_netem)")

    def _lose_no_more(self, fault: Fault, node: str) -> Receipt:
        rule = Rule("IN", self._site.address(node), share=_share(fault.arguments))
        others = [name for name in self._all() if name != node]
        lost = self._lost(rule, others)
        probes = 0
        while not lost and probes < _PROBES:
            # It sent nothing, or nothing that was lost.
            to = others[probes % len(others)]
            iptables.send_datagram(self._site.remote(node), self._site.address(to))
            lost, probes = self._lost(rule, [to]), probes + 1
        self._chains.remove(fault.name)
        self._by_rules.discard(fault.name)
        left = [name for name in others if rule in self._chains.hits(name)]
        how = f"{lost} of {node}'s packets were lost"
        how += f" (probe {probes})" if probes else ""
        how += f"; the rules are still on {listed(left)}" if left else ""
        return Receipt(lost > 0 and not left, how, {"lost": lost})

    def _lost(self, rule: Rule, nodes: list[str]) -> int:
        return sum(self._chains.hits(name).get(rule, 0) for name in nodes)

    def _all(self) -> list[str]:
        return [*self._site.servers, *self._site.clients, STORAGE]

    def _device(self, node: str) -> str:
        """Return the device by which a node reaches the others."""
        other = next(name for name in (*self._site.servers, *self._site.clients) if name != node)
        route = self._site.remote(node).run(["ip", "-o", "route", "get", self._site.address(other)])
        words = route.out.split()
        return words[words.index("dev") + 1]


def lacks(remote: Remote) -> tuple[str, ...]:
    """Return the kinds that a node's kernel cannot have: all but loss if it has no sch_netem.

    Only an attempt tells: as a module, sch_netem is loaded by the first queue. The loopback device
    has the queue for a moment. It delays nothing.
    """
    done = _queue(remote, "add", _LOOPBACK, ())
    if done.code:
        return tuple(kind for kind in KINDS if kind != "loss") if _lacking(done) else ()
    clear(remote, _LOOPBACK)
    return ()


def _queue(remote: Remote, verb: str, device: str, words: Sequence[str]) -> Result:
    """Give a device fencepost's own queue, with these words of netem."""
    queue = ["tc", "qdisc", verb, "dev", device, "root", "handle", HANDLE, "netem", *words]
    return remote.run(queue, check=False)


def _lacking(done: Result) -> bool:
    """Return whether a queue was refused because the kernel has no sch_netem."""
    return "qdisc kind is unknown" in done.err or "No such file" in done.err


def queues(remote: Remote, device: str) -> str:
    """Return the kernel's description of a device's queue."""
    return " ".join(remote.run(["tc", "qdisc", "show", "dev", device, "root"]).out.split())


def clear(remote: Remote, device: str) -> None:
    """Remove fencepost's own queue from a device, and no other."""
    if _OURS.match(queues(remote, device)):
        remote.run(["tc", "qdisc", "del", "dev", device, "root"])


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    nodes = pick(random, at, asked.target or deal(random, "where", ("one", "client")))
    able = tuple(kind for kind in KINDS if f"packet/{kind}" not in at.lacks)
    arguments: dict[str, Any] = {"kind": asked.variant or deal(random, "kind", able)}
    if arguments["kind"] == "loss":
        arguments["share"] = random.choice((LOST, HEAVY))
    return [Drawn(nodes, arguments)]


def _aimed(
    random: Random, at: Layout, asked: Asked, length_s: float, points: Points
) -> Aimed | None:
    if asked.target or random.random() >= 0.5:
        return None
    (drawn,) = draw(random, at, asked)
    return Aimed([HOLDER], drawn.arguments, length_s)


def _at_a_request(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Lengths]:
    """Lose most packets: a request that few losses meet is only late."""
    return {"share": HEAVY} if "share" in arguments else {}, (SHORT, PAST)


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    if arguments.get("kind") not in KINDS:
        raise ValueError(f"kind {arguments.get('kind')!r}: choose one of {', '.join(KINDS)}")
    share = arguments.get("share")
    if share is not None and not (arguments["kind"] == "loss" and 0 < _number(share) <= 1):
        raise ValueError(f"share {share!r}: it belongs to loss, and is above 0 and at most 1")
    if len(targets) != 1:
        raise ValueError("it affects one node at a time")


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    return f"what {listed(targets)} sends: {' '.join(_words(arguments))}"


def _words(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return netem's words for a kind of fault."""
    kind = str(arguments.get("kind"))
    share = (f"{_share(arguments):.0%}",) if kind == "loss" else ()
    return *KINDS.get(kind, (kind,)), *share


def _share(arguments: Mapping[str, Any]) -> float:
    return _number(arguments.get("share", LOST))


def _number(share: Any) -> float:
    return float(share) if isinstance(share, int | float) else 0.0


def leftovers(remote: Remote, server: Server | None) -> list[Leftover]:
    # A node that was kept up may have an older image without this command.
    listed = remote.run(["bash", "-c", "! command -v tc > /dev/null || tc qdisc show"]).out
    devices = [found[1] for row in listed.splitlines() if (found := _OURS.match(row))]
    return [
        Leftover(
            f"{device} has a queue", f"removed {device}'s queue", partial(clear, remote, device)
        )
        for device in devices
    ]


FAMILY = Family(
    name="packet",
    what="delays, loses, duplicates or reorders packets (netem)",
    receipt="the queue that the kernel shows; without sch_netem only for lost packets: the rules, "
    "and how many packets they dropped (of probes, if the node sent none)",
    make=Packet,
    draw=draw,
    describe=describe,
    strikes=("servers", "clients"),
    targets=TARGETS,
    variants=tuple(KINDS),
    validate=validate,
    meets=lambda asked: True,
    aim=Aiming(draw=_aimed, request=_at_a_request),
    points="aimed",
    lacks=lacks,
    leftovers=leftovers,
    loses=lambda targets, arguments: arguments.get("kind") == "loss",
    only_messages=True,
    colour=Colour("#b483c2", "#d0a6dc"),
)
