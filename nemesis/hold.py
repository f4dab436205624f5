"""Hold: the packets of one direction are held back, and arrive when the fault ends.

They are dropped where they would arrive, and TCP sends them again: the request is under way
for as long as the fault lasts, and a little longer, as TCP waits twice as long after each try.
GitHub's network did so for about 90 s in 2012 (Kleppmann 2016). `arguments`: `source`, `to`.
"""

from __future__ import annotations

from random import Random
from typing import Any

from fencepost.nemesis.aim import STORAGE, Drawn, Layout
from fencepost.nemesis.asked import Asked
from fencepost.nemesis.chains import Chains, probe
from fencepost.nemesis.nemesis import Fault, Receipt
from fencepost.nemesis.site import Site


class Hold:
    def __init__(self, site: Site, chains: Chains) -> None:
        self._site = site
        self._chains = chains
        self._of_probe: dict[str, int] = {}

    def inject(self, fault: Fault) -> Receipt:
        source, to = fault.arguments["source"], fault.arguments["to"]
        rule = f"IN -s {self._site.address(source)} -j DROP"
        self._chains.add(fault.name, {to: [rule]})
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
        return self._chains.hits(to).get(("IN", self._site.address(source), "DROP"), 0)


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
    words = f"what {client} sends to {to} is held back"
    return [Drawn([client, to], {"source": client, "to": to, "words": words})]


def refuse(at: Layout, targets: list[str], arguments: dict[str, Any]) -> str:
    source, to = arguments.get("source"), arguments.get("to")
    if source not in at.nodes or to not in at.nodes or source == to:
        return "a hold needs source and to: two nodes of the test"
    return f"{to} is a client: nothing is sent to it first" if to in at.clients else ""
