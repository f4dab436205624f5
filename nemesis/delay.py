"""Delay: the packets of one direction are held back, and arrive when the fault ends.

They are dropped where they would arrive, and TCP sends them again: the request is under way
for as long as the fault lasts, and a little longer, as TCP waits twice as long after each try.
GitHub's network did so for about 90 s in 2012 (Kleppmann 2016). `arguments`: `source`, `to`.
"""

from __future__ import annotations

from random import Random
from typing import Any

from fencepost.nemesis.asked import Asked
from fencepost.nemesis.chains import Chains, probe
from fencepost.nemesis.family import Colour, Family, Strike
from fencepost.nemesis.iptables import Rule
from fencepost.nemesis.nemesis import Fault, Receipt
from fencepost.nemesis.site import Site
from fencepost.nemesis.targets import STORAGE, Drawn, Layout


class Delay:
    def __init__(self, site: Site, chains: Chains) -> None:
        self._site = site
        self._chains = chains
        self._of_probe: dict[str, int] = {}

    def inject(self, fault: Fault) -> Receipt:
        source, to = fault.arguments["source"], fault.arguments["to"]
        self._chains.add(fault.name, {to: [self._rule(source)]})
        answer = probe(self._site, source, [to])[to]
        self._of_probe[fault.name] = self._dropped(source, to)
        return Receipt(
            answer == "silent", f"a probe from {source} to {to} met: {answer}", {"probe": answer}
        )

    def heal(self, fault: Fault) -> Receipt:
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
    """The one link on which packets are held back."""
    source, to = arguments.get("source"), arguments.get("to")
    return [[source, to]] if source and to else []


def impairs(targets: list[str], arguments: dict[str, Any]) -> list[str]:
    """Both ends of that link: who asks hears nothing, and who is asked answers nothing in time."""
    return [node for link in links(targets, arguments) for node in link] or targets


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    """A client's requests to the storage or to a server; those to the storage do more harm."""
    client = asked.target if asked.target in at.clients else random.choice(at.clients)
    to = asked.target if asked.target in (*at.servers, STORAGE) else ""
    if not to:
        to = STORAGE if random.random() < 2 / 3 else random.choice(at.servers)
    return [Drawn([client, to], {"source": client, "to": to})]


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    source, to = arguments.get("source"), arguments.get("to")
    if source not in at.nodes or to not in at.nodes or source == to:
        raise ValueError("a delay needs source and to: two nodes of the test")
    if to in at.clients:
        raise ValueError(f"{to} is a client: nothing is sent to it first")


def clashes(mine: Strike, other: Strike, at: Layout) -> bool:
    """What is cut both ways shows nothing of a cut of one direction."""
    return not mine.links.isdisjoint(other.links)


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    return f"what {arguments.get('source')} sends to {arguments.get('to')} is held back"


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
    exclusive=False,
    clashes=clashes,
    impairs=impairs,
    links=links,
    colour=Colour("#a9784a", "#cf9c6b"),
)
