"""Partitions: links between nodes are cut with iptables, packet by packet.

`arguments.links` lists the cut links as pairs of nodes, so that any client can be cut off from
any servers, and servers from one another. `how` is `drop` (nothing comes, the default) or `reject`
(a sender is told at once that the connection is over). `lost` leaves one direction open: with
`requests` what the first of a pair sends is lost, with `replies` what it is answered.
Connections that are open are cut as well as new ones: a rule looks at packets, not at connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

from fencepost.nemesis.aim import PRIMARY, STORAGE, Drawn, Layout, pick
from fencepost.nemesis.asked import Asked
from fencepost.nemesis.chains import Chains, datagram, probe
from fencepost.nemesis.nemesis import Fault, Receipt
from fencepost.nemesis.site import Site

HOW = ("drop", "reject")
LOST = ("requests", "replies")
SHAPES = (
    "halves",
    "random-halves",
    "one",
    "minority",
    "majority",
    "ring",
    "bridge",
    PRIMARY,
    "client",
    "clients",
    STORAGE,
    *LOST,
)


class Partition:
    def __init__(self, site: Site, chains: Chains) -> None:
        self._site = site
        self._chains = chains

    def inject(self, fault: Fault) -> Receipt:
        how, lost = fault.arguments.get("how", "drop"), fault.arguments.get("lost")
        rules: dict[str, list[str]] = {}
        counted: dict[str, list[str]] = {}
        for near, far in fault.arguments["links"]:
            if lost:
                source, to = (near, far) if lost == "requests" else (far, near)
                rules.setdefault(to, []).append(f"IN -s {self._site.address(source)} -j DROP")
                # The other direction passes, and is counted to prove it.
                counted.setdefault(source, []).append(to)
                continue
            for here, there in ((near, far), (far, near)):
                rules.setdefault(here, []).extend(_both(self._site.address(there), how))
        self._chains.add(fault.name, rules, counted)
        return self._one_way(fault) if lost else self._receipt(fault, cut=True)

    def heal(self, fault: Fault) -> Receipt:
        self._chains.remove(fault.name)
        return self._receipt(fault, cut=False)

    def _receipt(self, fault: Fault, cut: bool) -> Receipt:
        # A way that another fault cuts as well does not open when this one ends.
        shared = set() if cut else self._shared(fault)
        rejects = cut and fault.arguments.get("how") == "reject"
        met = self._probes(fault.arguments["links"])
        if not cut:
            shared |= self._shared(fault)
            met = {way: "cut by another fault" if way in shared else met[way] for way in met}
        if rejects:
            # A server that is down refuses, too: what tells is that the rule did it.
            rejected = self._rejected(fault.arguments["links"])
            met = {
                way: "rejected" if answer == "refused" and way in rejected else answer
                for way, answer in met.items()
            }
        closed = ("silent", "rejected") if rejects else ("silent",)
        right = [way for way, answer in met.items() if (answer in closed) == cut]
        what = "no answer across" if cut else "an answer across"
        still = f", {len(shared)} of them cut by another fault still" if shared else ""
        how = f"{what} {len(right)} of {len(met)} probed ways{still}"
        return Receipt(bool(met) and len(right) == len(met), how, {"probes": met})

    def _one_way(self, fault: Fault) -> Receipt:
        """One datagram each way: the counters of the receivers' own chains tell which arrived."""
        requests = fault.arguments["lost"] == "requests"
        found: dict[str, str] = {}
        for near, far in fault.arguments["links"]:
            for source, to in ((near, far), (far, near)):
                found[f"{source} to {to}"] = datagram(self._site, self._chains, source, to)
        wanted = {
            f"{source} to {to}": "dropped" if lost else "passed"
            for near, far in fault.arguments["links"]
            for source, to, lost in ((near, far, requests), (far, near, not requests))
        }
        right = [way for way, seen in found.items() if wanted[way] == seen]
        how = f"{len(right)} of {len(wanted)} ways as they are to be: " + ", ".join(
            f"{way} {seen}" for way, seen in found.items()
        )
        return Receipt(bool(found) and len(right) == len(wanted), how, {"ways": found})

    def _rejected(self, links: list[list[str]]) -> set[str]:
        """The ways on which a rule has rejected packets."""
        counts = {node: self._chains.hits(node) for link in links for node in link}
        return {
            f"{source} to {to}"
            for near, far in links
            for source, to in ((near, far), (far, near))
            if counts[source].get(("OUT", self._site.address(to), "REJECT"), 0)
        }

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
        if not wanted:
            return {}
        with ThreadPoolExecutor(len(wanted)) as pool:
            found = pool.map(lambda item: probe(self._site, *item), wanted.items())
            return {
                f"{source} to {target}": answer
                for source, answers in zip(wanted, found, strict=True)
                for target, answer in answers.items()
            }


def _both(address: str, how: str) -> list[str]:
    """A node's rules against another: nothing of it comes in, nothing goes out to it.

    What is rejected is rejected where it is sent: an answer of the receiver's would be cut, too.
    """
    out = [f"OUT -d {address} -j DROP"]
    if how == "reject":
        out.insert(0, f"OUT -d {address} -p tcp -j REJECT --reject-with tcp-reset")
    return [f"IN -s {address} -j DROP", *out]


def words(links: Iterable[Iterable[str]]) -> str:
    far: dict[str, list[str]] = {}
    for near, other in links:
        far.setdefault(near, []).append(other)
    return "; ".join(f"{near} cut off from {', '.join(others)}" for near, others in far.items())


def links(targets: list[str], arguments: dict[str, Any]) -> list[list[str]]:
    """The pairs of nodes that a partition keeps apart."""
    return [list(link) for link in arguments.get("links") or ()]


def impairs(targets: list[str], arguments: dict[str, Any]) -> list[str]:
    """The nodes on the small side of the cut: without them every link that is left is open.

    Where several smallest sets of nodes are such a side, any of them may be the one: it is all of
    their nodes then, as with both ends of a single link.
    """
    cut = links(targets, arguments)
    if not cut:
        return targets
    size = next(size for size in range(1, len(cut) + 1) if _covers(cut, size))
    return sorted({node for side in _covers(cut, size) for node in side})


def _covers(cut: Sequence[Sequence[str]], size: int) -> list[set[str]]:
    """Sets of at most `size` nodes with an end of every link, all of the smallest among them."""
    if not cut:
        return [set()]
    if not size:
        return []
    near, far = cut[0]
    return [
        {node, *rest}
        for node in dict.fromkeys((near, far))
        for rest in _covers([link for link in cut if node not in link], size - 1)
    ]


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    """A partition of the asked shape, or of any; one in four of these rejects."""
    shape = asked.target or random.choice([shape for shape in SHAPES if not _lacks(shape, at)])
    lost = shape if shape in LOST else None
    how = asked.variant
    if not how:
        how = "reject" if not asked.target and not lost and random.random() < 0.25 else "drop"
    links, said = _shape(random, at, shape)
    arguments: dict[str, Any] = {"links": links, "how": how}
    if lost:
        arguments["lost"] = lost
    if how == "reject":
        said += ", by rejection"
    targets = list(dict.fromkeys(node for link in links for node in link))
    return [Drawn(targets, arguments | {"words": said})]


def _lacks(shape: str, at: Layout) -> str:
    """Why a shape can not be had with this layout; else ''."""
    if shape == PRIMARY and not at.leads:
        return "none of its servers leads: each is on its own"
    if shape in ("ring", "bridge", "halves", "random-halves", "clients") and len(at.servers) < 3:
        return f"{shape} takes three servers, and there are {len(at.servers)}"
    return ""


def _shape(random: Random, at: Layout, shape: str) -> tuple[list[list[str]], str]:
    everybody = [*at.servers, *at.clients]
    match shape:
        case "halves" | "random-halves":
            servers, clients = list(at.servers), list(at.clients)
            if shape == "random-halves":
                random.shuffle(servers)
                random.shuffle(clients)
            one = [*servers[: len(servers) // 2], *clients[::2]]
            return _sides(at, one), f"{', '.join(one)} cut off from all other nodes"
        case "ring":
            return _ring(random, at), "each node sees another majority of the servers"
        case "bridge":
            servers = random.sample(at.servers, len(at.servers))
            middle, rest = servers[0], servers[1:]
            one = [*rest[: len(rest) // 2], *at.clients[::2]]
            links = [link for link in _sides(at, one) if middle not in link]
            return links, f"{', '.join(one)} cut off from all others but {middle}"
        case "client":
            client = random.choice(at.clients)
            lost = random.sample(at.servers, random.randint(1, len(at.servers)))
            links = [[client, server] for server in lost]
            return links, words(links)
        case "clients":
            links = _majorities(at, random.sample(at.servers, len(at.servers)))
            return links, "each client sees another majority of the servers"
        case "storage":
            links = [[random.choice(at.clients), STORAGE]]
            return links, words(links)
        case "requests" | "replies":
            client = random.choice(at.clients)
            to = random.sample(at.servers, random.randint(1, max(1, len(at.servers) // 2 + 1)))
            which = "the requests of" if shape == "requests" else "the replies to"
            links = [[client, server] for server in to]
            return links, f"{which} {client} are lost: {', '.join(to)}"
        case "primary":
            links = [[PRIMARY, node] for node in everybody]
            return links, "the primary is cut off from all other nodes"
    alone = pick(random, at, shape)
    return _sides(at, alone), f"{' and '.join(alone)} cut off from all other nodes"


def _sides(at: Layout, one: list[str]) -> list[list[str]]:
    """The links between these nodes and all the others; clients have none to one another."""
    others = [node for node in (*at.servers, *at.clients) if node not in one]
    pairs = [[near, far] for near in one for far in others]
    return [pair for pair in pairs if not set(pair) <= set(at.clients)]


def _ring(random: Random, at: Layout) -> list[list[str]]:
    """Jepsen's majorities ring: each server sees a majority, its neighbours; so does each client.

    Of three servers each sees all: no two of three majorities leave a link to cut.
    """
    ring = random.sample(at.servers, len(at.servers))
    reach = (len(ring) // 2 + 1) // 2
    links = []
    for i, near in enumerate(ring):
        for j in range(i + 1, len(ring)):
            if min(j - i, len(ring) - (j - i)) > reach:
                links.append([near, ring[j]])
    return links + _majorities(at, ring)


def _majorities(at: Layout, ring: list[str]) -> list[list[str]]:
    """Each client loses all but a majority of the servers, each another one."""
    most = len(ring) // 2 + 1
    return [
        [client, ring[(number + place) % len(ring)]]
        for number, client in enumerate(at.clients)
        for place in range(most, len(ring))
    ]


def refuse(at: Layout, targets: list[str], arguments: dict[str, Any]) -> str:
    links = arguments.get("links")
    if not isinstance(links, list) or not links or any(len(link) != 2 for link in links):
        return "a partition needs links: a list of pairs of nodes"
    strange = {node for link in links for node in link} - {*at.nodes, PRIMARY}
    if strange:
        return f"the test has no node {min(strange)!r}"
    how, lost = arguments.get("how", "drop"), arguments.get("lost")
    if how not in HOW:
        return f"there is no {how!r}; choose one of: {', '.join(HOW)}"
    if lost is not None and lost not in LOST:
        return f"what is lost are requests or replies, not {lost!r}"
    if lost and how == "reject":
        return "a sender can not be told of what is lost in one direction: leave reject out"
    if not lost and all(node in at.clients for link in links for node in link):
        return "clients have no links to one another"
    return ""


def lacks(at: Layout, asked: Asked) -> str:
    if asked.target in LOST and asked.variant == "reject":
        return "a sender can not be told of what is lost in one direction: leave reject out"
    return _lacks(asked.target, at) if asked.target else ""
