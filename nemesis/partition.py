"""Partitions: links between nodes are cut, in both directions, packet by packet.

`arguments.links` lists the cut links as pairs of nodes, so that any client can be cut off from
any servers, and servers from one another. Dropping packets cuts existing connections as well.
"""

from __future__ import annotations

from random import Random
from typing import Any

from nemesis.chains import Chains, probe
from nemesis.nemesis import Fault, Receipt
from nemesis.site import Site


class Partition:
    def __init__(self, site: Site, chains: Chains) -> None:
        self._site = site
        self._chains = chains

    def inject(self, fault: Fault) -> Receipt:
        rules: dict[str, list[str]] = {}
        for near, far in fault.arguments["links"]:
            address = self._site.address(far)
            rules.setdefault(near, []).extend(
                [f"FENCEPOST-IN -s {address} -j DROP", f"FENCEPOST-OUT -d {address} -j DROP"]
            )
        self._chains.add(fault.name, rules)
        return self._receipt(fault, cut=True)

    def heal(self, fault: Fault) -> Receipt:
        self._chains.remove(fault.name)
        return self._receipt(fault, cut=False)

    def _receipt(self, fault: Fault, cut: bool) -> Receipt:
        # A way that another fault cuts as well does not open when this one ends.
        shared = set() if cut else self._shared(fault)
        met = self._probes(fault.arguments["links"])
        if not cut:
            shared |= self._shared(fault)
            met = {way: "cut by another fault" if way in shared else met[way] for way in met}
        right = [way for way, answer in met.items() if (answer == "silent") == cut]
        what = "no answer across" if cut else "an answer across"
        still = f", {len(shared)} of them cut by another fault still" if shared else ""
        how = f"{what} {len(right)} of {len(met)} probed ways{still}"
        return Receipt(bool(met) and len(right) == len(met), how, {"probes": met})

    def _shared(self, fault: Fault) -> set[str]:
        """The ways of a fault that has ended which another one cuts."""
        return {
            f"{source} to {target}"
            for near, far in fault.arguments["links"]
            if self._chains.cut(near, far)
            for source, target in ((near, far), (far, near))
        }

    def _probes(self, links: list[list[str]]) -> dict[str, str]:
        wanted: dict[str, list[str]] = {}
        for near, far in links:
            for source, target in ((near, far), (far, near)):
                if self._site.port(target) is not None:
                    wanted.setdefault(source, []).append(target)
        return {
            f"{source} to {target}": answer
            for source, targets in wanted.items()
            for target, answer in probe(self._site, source, targets).items()
        }


def words(links: list[list[str]]) -> str:
    far: dict[str, list[str]] = {}
    for near, other in links:
        far.setdefault(near, []).append(other)
    return "; ".join(f"{near} cut off from {', '.join(others)}" for near, others in far.items())


def draw(
    random: Random, servers: list[str], clients: list[str]
) -> tuple[list[str], dict[str, Any]]:
    """A partition at random: each client loses a few servers, or some servers lose everybody."""
    if random.random() < 0.5:
        links = [
            [client, server]
            for client in clients
            for server in random.sample(servers, random.randint(0, len(servers) // 2))
        ] or [[random.choice(clients), random.choice(servers)]]
    else:
        alone = random.sample(servers, random.randint(1, max(1, len(servers) // 2)))
        rest = [server for server in servers if server not in alone]
        links = [[server, other] for server in alone for other in (*rest, *clients)]
        said = f"{' and '.join(alone)} cut off from all other nodes"
        return _targets(links), {"links": links, "words": said}
    return _targets(links), {"links": links, "words": words(links)}


def _targets(links: list[list[str]]) -> list[str]:
    return list(dict.fromkeys(node for link in links for node in link))
