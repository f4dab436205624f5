"""Delay: the packets of one direction are held back, and arrive when the fault ends.

They are dropped at the receiver, and TCP retransmits them: the request is in flight for as long as
the fault lasts, and a little longer, because TCP doubles its retry interval. GitHub's network
delayed packets for about 90 s in 2012 (Kleppmann 2016). `arguments`: `source`, `to`.

With `connection` only the packets of one TCP connection are delayed: the one that the client is
about to use, stopped at a failpoint before a message. Other connections pass. With `lost` as well
they never arrive, even after the fault; this keeps no node from answering.
"""

from __future__ import annotations

import time
from dataclasses import replace
from random import Random
from typing import Any

from fencepost.nemesis.aiming import Aimed, Aiming, Points
from fencepost.nemesis.chains import PROBES, Chains, probe
from fencepost.nemesis.family import Colour, Family, Strike
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.iptables import Rule
from fencepost.nemesis.nemesis import Fault, Receipt
from fencepost.nemesis.site import Site
from fencepost.nemesis.targets import HOLDER, STORAGE, Drawn, Layout

_TRIES_AGAIN_S = 60.0
"""The longest retry interval of Linux is 120 s; after a hold of some seconds, as long as that
hold."""


class Delay:
    def __init__(self, site: Site, chains: Chains) -> None:
        self._site = site
        self._chains = chains
        self._of_probe: dict[str, int] = {}
        self._of_one: dict[str, Rule] = {}

    def inject(self, fault: Fault) -> Receipt:
        if fault.arguments.get("connection"):
            return self._begin_one(fault)
        source, to = fault.arguments["source"], fault.arguments["to"]
        self._chains.add(fault.name, {to: [self._rule(source)]})
        many, tries = 0, 0
        while not many and tries < PROBES:
            answer, tries = probe(self._site, source, [to])[to], tries + 1
            self._of_probe[fault.name] = many = self._dropped(source, to)
        how = f"a probe from {source} to {to} met: {answer}; {many} packets had been held back"
        return Receipt(answer == "silent" and many > 0, how, {"probe": answer})

    def _begin_one(self, fault: Fault) -> Receipt:
        source, to = fault.arguments["source"], fault.arguments["to"]
        asks = source in self._site.clients
        client = source if asks else to
        port = self._site.client(client).connection
        if not port:
            return Receipt(False, f"{client} did not report which connection it is about to use")
        rule = Rule("IN", self._site.address(source), port=f"--{'s' if asks else 'd'}port {port}")
        self._of_one[fault.name] = rule
        self._chains.add(fault.name, {to: [rule]})
        there = rule in self._chains.hits(to)
        how = f"{to}'s chain {'drops' if there else 'does not drop'} what {source} sends to it on "
        return Receipt(there, f"{how}{client}'s connection from port {port}", {"port": port})

    def _end_one(self, fault: Fault, rule: Rule) -> Receipt:
        source, to = fault.arguments["source"], fault.arguments["to"]
        held = self._chains.hits(to).get(rule, 0)
        how = f"{held} packets or more of that connection from {source} to {to} had been dropped"
        arrived = True
        if fault.arguments.get("lost"):
            self._chains.lose({to: [rule]})
        else:
            arrived = self._arrives(fault.name, to, replace(rule, verdict=""))
            how += ", and then one arrived" if arrived else ", and none arrived after that"
        self._chains.remove(fault.name)
        return Receipt(held > 0 and arrived, how, {"held": held})

    def _arrives(self, fault: str, to: str, passes: Rule) -> bool:
        """Let the packets pass, and wait for one: TCP doubles its retry interval each time."""
        self._chains.add(fault, {to: [passes]})
        end = time.monotonic() + _TRIES_AGAIN_S
        while not self._chains.hits(to).get(passes, 0):
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def heal(self, fault: Fault) -> Receipt:
        rule = self._of_one.pop(fault.name, None)
        if rule is not None:
            return self._end_one(fault, rule)
        source, to = fault.arguments["source"], fault.arguments["to"]
        held = max(0, self._dropped(source, to) - self._of_probe.pop(fault.name, 0))
        self._chains.remove(fault.name)
        answer = probe(self._site, source, [to])[to]
        how = f"{held} packets or more had been held back; then a probe met: {answer}"
        return Receipt(answer != "silent", how, {"held": held, "probe": answer})

    def _dropped(self, source: str, to: str) -> int:
        return self._chains.hits(to).get(self._rule(source), 0)

    def _rule(self, source: str) -> Rule:
        return Rule("IN", self._site.address(source))


def links(targets: list[str], arguments: dict[str, Any]) -> list[list[str]]:
    """Return the one link on which packets are held back; none if only a message is lost."""
    if arguments.get("lost"):
        return []
    source, to = arguments.get("source"), arguments.get("to")
    return [[source, to]] if source and to else []


def impairs(targets: list[str], arguments: dict[str, Any]) -> list[str]:
    """Return both ends of that link: one gets no reply, the other's replies are late."""
    if arguments.get("lost"):
        return []
    return [node for link in links(targets, arguments) for node in link] or targets


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    """Draw requests of a client to the storage or to a server; those to the storage do more
    harm."""
    client = asked.target if asked.target in at.clients else random.choice(at.clients)
    to = asked.target if asked.target in (*at.servers, STORAGE) else ""
    if not to:
        to = STORAGE if random.random() < 2 / 3 else random.choice(at.servers)
    return [Drawn([client, to], {"source": client, "to": to})]


def _aimed(
    random: Random, at: Layout, asked: Asked, length_s: float, points: Points
) -> Aimed | None:
    """Delay packets of the holder. Whether a lock fails shows at its servers, and whether its guard
    does at the store."""
    if asked.target or random.random() >= 0.7:
        return None
    to = random.choice(at.servers if random.random() < 0.75 or not at.stores else at.stores)
    return Aimed([HOLDER, to], {"source": HOLDER, "to": to}, length_s)


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    source, to = arguments.get("source"), arguments.get("to")
    if source not in at.nodes or to not in at.nodes or source == to:
        raise ValueError("a delay needs source and to: two nodes of the test")
    if to in at.clients and not arguments.get("connection"):
        raise ValueError(f"{to} is a client, which receives no requests")


def clashes(mine: Strike, other: Strike, at: Layout) -> bool:
    """A cut in both directions hides a cut of one direction."""
    return not mine.links.isdisjoint(other.links)


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    becomes = "lost" if arguments.get("lost") else "held back"
    on = " on one connection" if arguments.get("connection") else ""
    return f"what {arguments.get('source')} sends to {arguments.get('to')}{on} is {becomes}"


FAMILY = Family(
    name="delay",
    what="holds back the packets of one direction, which arrive later",
    receipt="a probe gets no answer, and gets one at the end; the packets held back are counted",
    make=Delay,
    draw=draw,
    describe=describe,
    strikes=("servers", "clients"),
    targets=(STORAGE,),
    validate=validate,
    meets=lambda asked: True,
    aim=Aiming(draw=_aimed),
    points="aimed",
    exclusive=False,
    clashes=clashes,
    impairs=impairs,
    links=links,
    only_messages=True,
    colour=Colour("#a9784a", "#cf9c6b"),
)
