"""Partitions: links between nodes are cut with iptables, packet by packet.

`arguments.links` lists the cut links as pairs of nodes, so that any client can be cut off from any
servers, and servers from one another. `how` is `drop` (no packet arrives, the default) or `reject`
(the sender's connection is reset at once). `lost` leaves one direction open: with `requests` the
packets of the first of a pair are lost, with `replies` those to it. `shape` is the drawn shape, if
any, which explains how the links belong together. TCP retransmits data that a client sent into a
cut after the heal; with `sent` `lost` it does not arrive. Connections that are open are cut as well
as new ones: a rule applies to packets, not to connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import Any

from fencepost.nemesis import chains, iptables
from fencepost.nemesis.aiming import PAST, USUAL, Aimed, Aiming, Lengths, Points, any_client
from fencepost.nemesis.aiming import SHORT as SHORT_HOLD
from fencepost.nemesis.axis import SHORT, FaultAxis
from fencepost.nemesis.chains import PROBES, Chains, datagram, probe
from fencepost.nemesis.cuts import impairs, links
from fencepost.nemesis.family import Colour, Column, Family, Strike
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.iptables import Rule
from fencepost.nemesis.nemesis import Fault, Receipt
from fencepost.nemesis.shapes import LOST, SHAPES, SIDES, cut_links, must_fit, possible
from fencepost.nemesis.site import Site
from fencepost.nemesis.targets import (
    HOLDER,
    PRIMARY,
    SERVERS,
    Drawn,
    Layout,
    listed,
    pick,
    sentence,
)
from fencepost.nemesis.turns import deal, length, one_in
from fencepost.setting import TIME_S

HOW = ("drop", "reject")
_UNPROVEN = "silent, but no rule dropped a packet"

_CUTS = {("reject", None): 4, ("drop", "replies"): 3, ("drop", "requests"): 2, ("drop", None): 1}
"""How a cut of the holder meets packets, and which of them, with weights. A request that was
dropped is sent again by TCP, whether its reply is dropped or not. One that was rejected is not."""
_AT_ONCE = (0.0, 0.01)
_LENGTHS: dict[str, Lengths] = {
    # The client learns of it at once, and may retry within a tenth of a second.
    "reject": (_AT_ONCE, _AT_ONCE, _AT_ONCE, _AT_ONCE, SHORT_HOLD, PAST),
    # Its request was carried out. Requests after its timeout must be answered.
    "replies": (SHORT_HOLD, SHORT_HOLD, PAST),
    # TCP sends it again. It is to arrive when the lease has expired.
    "requests": (SHORT_HOLD, PAST, PAST),
    "drop": (SHORT_HOLD, PAST, PAST),
}
"""The lengths of a cut that meets a request, in leases, by what it does to it."""


class Partition:
    def __init__(self, site: Site, chains: Chains) -> None:
        self._site = site
        self._chains = chains

    def inject(self, fault: Fault) -> Receipt:
        how, lost = fault.arguments.get("how", "drop"), fault.arguments.get("lost")
        rules: dict[str, list[Rule]] = {}
        counts: dict[str, list[Rule]] = {}
        for near, far in fault.arguments["links"]:
            if lost:
                source, to = (near, far) if lost == "requests" else (far, near)
                rules.setdefault(to, []).append(Rule("IN", self._site.address(source)))
                # The other direction passes, and is counted to prove it.
                counts.setdefault(source, []).append(Rule("IN", self._site.address(to), ""))
                continue
            for here, there in _ways([(near, far)]):
                rules.setdefault(here, []).extend(_both(self._site.address(there), how))
        self._chains.add(fault.name, rules, counts)
        return self._one_way(fault) if lost else self._receipt(fault, cut=True)

    def heal(self, fault: Fault) -> Receipt:
        many = self._lose(fault) if fault.arguments.get("sent") == "lost" else 0
        self._chains.remove(fault.name)
        receipt = self._receipt(fault, cut=False)
        if not many:
            return receipt
        return replace(receipt, how=f"{receipt.how}; data sent on {many} connections is lost")

    def _lose(self, fault: Fault) -> int:
        """Keep data that clients have sent into the cut from arriving; return the number of
        connections."""
        rules: dict[str, list[Rule]] = {}
        for near, far in fault.arguments["links"]:
            if near in self._site.clients:
                here, there = self._site.address(near), self._site.address(far)
                rules.setdefault(far, []).extend(
                    Rule("IN", here, port=f"--sport {port}")
                    for port in iptables.unsent(self._site.remote(near), there)
                )
        self._chains.lose(rules)
        return sum(map(len, rules.values()))

    def _receipt(self, fault: Fault, cut: bool) -> Receipt:
        # A link that another fault cuts as well does not open when this one ends, and a probe on
        # one that loses packets may have no answer.
        shared = set() if cut else self._shared(fault)
        undecided = _UNPROVEN if cut else "silent"
        met = self._met(fault, cut)
        tries = PROBES - 1
        while tries and any(met[way] == undecided for way in met.keys() - shared):
            again = self._met(fault, cut)
            met |= {way: again[way] for way in met if met[way] == undecided}
            tries -= 1
        if not cut:
            shared |= self._shared(fault)
            met = {way: "disturbed by another fault" if way in shared else met[way] for way in met}
        rejects = cut and fault.arguments.get("how") == "reject"
        closed = ("rejected",) if rejects else ("silent", "rejected")
        right = [way for way, answer in met.items() if (answer in closed) == cut]
        what = "a reset across" if rejects else "no answer across" if cut else "an answer across"
        still = f", {len(shared)} of them disturbed by another fault" if shared else ""
        how = f"{what} {len(right)} of {len(met)} probed ways{still}"
        return Receipt(bool(met) and len(right) == len(met), how, {"probes": met})

    def _met(self, fault: Fault, cut: bool) -> dict[str, str]:
        """Probe each way. For a cut, the senders' counters tell what the rules have done: a server
        that is down refuses, too, and on a busy machine a probe may end before its first packet."""
        links = fault.arguments["links"]
        found = self._probes(links)
        if not cut:
            return found
        verdicts = self._counted(links)
        for way, answer in found.items():
            if answer == "refused" and "REJECT" in verdicts[way]:
                found[way] = "rejected"
            elif answer == "silent" and not verdicts[way]:
                found[way] = _UNPROVEN
        return found

    def _one_way(self, fault: Fault) -> Receipt:
        """Send one datagram each way; the counters of the receivers' own chains show which
        arrived."""
        requests = fault.arguments["lost"] == "requests"
        found = {
            f"{source} to {to}": datagram(self._site, self._chains, source, to)
            for source, to in _ways(fault.arguments["links"])
        }
        wanted = {
            f"{source} to {to}": "dropped" if lost else "passed"
            for near, far in fault.arguments["links"]
            for source, to, lost in ((near, far, requests), (far, near, not requests))
        }
        right = [way for way, seen in found.items() if wanted[way] == seen]
        how = f"{len(right)} of {len(wanted)} ways as required: " + ", ".join(
            f"{way} {seen}" for way, seen in found.items()
        )
        return Receipt(bool(found) and len(right) == len(wanted), how, {"ways": found})

    def _counted(self, links: list[list[str]]) -> dict[str, set[str]]:
        """Return for each way the verdicts of the rules that have met packets at its sender."""
        with ThreadPoolExecutor() as pool:
            nodes = sorted({node for link in links for node in link})
            counts = dict(zip(nodes, pool.map(self._chains.hits, nodes), strict=True))
        return {
            f"{source} to {to}": {
                verdict
                for verdict in ("REJECT", "DROP")
                if counts[source].get(Rule("OUT", self._site.address(to), verdict), 0)
            }
            for source, to in _ways(links)
        }

    def _shared(self, fault: Fault) -> set[str]:
        """Return the ways of an ended fault on which another one still drops packets."""
        shared = [link for link in fault.arguments["links"] if self._chains.disturbed(*link)]
        return {f"{source} to {target}" for source, target in _ways(shared)}

    def _probes(self, links: list[list[str]]) -> dict[str, str]:
        wanted: dict[str, list[str]] = {}
        for source, target in _ways(links):
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


def _ways(links: Iterable[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield both directions of each link."""
    for near, far in links:
        yield from ((near, far), (far, near))


def _both(address: str, how: str) -> list[Rule]:
    """Return a node's rules against another: drop everything from it and to it.

    Rejection happens at the sender, because the receiver's answer would be cut, too. The reset
    comes in as if the other node had sent it.
    """
    if how != "reject":
        return [Rule("IN", address), Rule("OUT", address)]
    return [
        Rule("IN", address, "RESET"), Rule("IN", address), Rule("OUT", address, "REJECT"),
        Rule("OUT", address),
    ]  # fmt: skip


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    """Draw a partition of the requested shape, or of any; one in four rejects."""
    shape = asked.target or deal(random, "shape", possible(at))
    must_fit(shape, at)
    lost = shape if shape in LOST else None
    how = asked.variant
    if not how:
        any_how = not asked.target and not lost
        how = "reject" if any_how and one_in(random, "reject", 4) else "drop"
    cut = cut_links(random, at, shape)
    arguments: dict[str, Any] = {"links": cut, "how": how, "shape": shape}
    if lost:
        arguments["lost"] = lost
    targets = list(dict.fromkeys(node for link in cut for node in link))
    return [Drawn(targets, arguments)]


def _aimed(
    random: Random, at: Layout, asked: Asked, length_s: float, points: Points
) -> Aimed | None:
    """Cut the holder off from all servers, or from a majority."""
    if not any_client(asked):
        return None
    if not asked.target and not deal(random, "holder", (True, False), (7, 3)):
        return None
    count = random.choice((len(at.servers), len(at.servers) // 2 + 1))
    cut = [[HOLDER, server] for server in random.sample(at.servers, count)]
    how, lost = deal(random, "cut", [*_CUTS], [*_CUTS.values()], lambda one: one[0])
    arguments = {"links": cut, "how": how} | ({"lost": lost} if lost else {})
    lasts_s = length(random, f"length of {how}", *USUAL) * at.ttl_s
    return Aimed([HOLDER, *(far for _, far in cut)], arguments, lasts_s)


def _at_a_request(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Lengths]:
    return {}, _LENGTHS[arguments.get("lost") or arguments["how"]]


def _servers_alone(targets: Sequence[str], arguments: Mapping[str, Any], at: Layout) -> bool:
    """The nodes on the other side of a cut are targets as well."""
    shape = arguments.get("shape")
    return shape in SERVERS if shape else set(targets) <= set(at.servers)


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    cut = arguments.get("links")
    if not isinstance(cut, list) or not cut or any(len(link) != 2 for link in cut):
        raise ValueError("a partition needs links: a list of pairs of nodes")
    strange = {node for link in cut for node in link} - {*at.nodes, PRIMARY}
    if strange:
        raise ValueError(f"the test has no node {min(strange)!r}")
    how, lost = arguments.get("how", "drop"), arguments.get("lost")
    if how not in HOW:
        raise ValueError(f"there is no {how!r}; choose one of: {', '.join(HOW)}")
    if arguments.get("sent") not in (None, "lost"):
        raise ValueError(f"sent is {arguments['sent']!r}: it can only be 'lost'")
    if lost is not None and lost not in LOST:
        raise ValueError(f"lost is {lost!r}: choose one of: {', '.join(LOST)}")
    if lost and how == "reject":
        raise ValueError(
            "a sender cannot be notified of packets lost in one direction: leave reject out"
        )
    if not lost and all(node in at.clients for link in cut for node in link):
        raise ValueError("clients have no links to one another")


def clashes(mine: Strike, other: Strike, at: Layout) -> bool:
    """A cut in both directions hides a cut of one direction, and one that drops one that
    rejects."""
    rejects = [one.arguments.get("how") == "reject" for one in (mine, other)]
    hidden = mine.arguments.get("lost") or (
        other.family == "partition" and rejects == [True, False]
    )
    return bool(hidden) and not mine.links.isdisjoint(other.links)


_ALL_SEE = {
    "ring": "each node sees another majority of the servers",
    "clients": "each client sees another majority of the servers",
}


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    """Describe it by its shape, if one was drawn; else link by link."""
    cut = links(targets, arguments)
    far: dict[str, list[str]] = {}
    for near, other in cut:
        far.setdefault(near, []).append(other)
    shape, lost = arguments.get("shape"), arguments.get("lost")
    if lost:
        which = "the requests of" if lost == "requests" else "the replies to"
        return "; ".join(f"{which} {one} are lost: {', '.join(far[one])}" for one in far)
    if shape in _ALL_SEE:
        text = _ALL_SEE[shape]
    elif shape in SIDES:
        text = f"{sentence(list(far), 'is', 'are')} cut off from all other nodes"
    elif shape == "bridge":
        text = f"{sentence(list(far), 'is', 'are')} cut off from all other nodes but one server"
    else:
        alike: dict[frozenset[str], list[str]] = {}
        for near in far:
            alike.setdefault(frozenset(far[near]), []).append(near)
        text = "; ".join(
            f"{sentence(nodes, 'is', 'are')} cut off from {listed(far[nodes[0]])}"
            for nodes in alike.values()
        )
    return text + (", by rejection" if arguments.get("how") == "reject" else "")


def _cut_off(lasts_s: float, at: Layout, random: Random) -> Drawn:
    (client,) = pick(random, at, "client")
    cut = [[client, server] for server in at.servers]
    return Drawn([client, *at.servers], {"links": cut, "how": "drop"}, duration_s=lasts_s)


FAMILY = Family(
    name="partition",
    what="cuts links between nodes with iptables, by shape: dropped or rejected, both ways or one",
    receipt="a probe across each cut link gets no answer (a reset, if it rejects), its sender's "
    "chain counts a packet, and a probe gets an answer at the end; for one way, datagrams that the "
    "receiver's chain counts",
    make=Partition,
    draw=draw,
    describe=describe,
    strikes=("servers", "clients"),
    targets=SHAPES,
    variants=HOW,
    validate=validate,
    aim=Aiming(
        draw=_aimed,
        request=_at_a_request,
        cut=lambda cut: {"links": cut, "how": "drop"},
        servers_alone=_servers_alone,
    ),
    meets=lambda asked: True,
    points="aimed",
    exclusive=False,
    clashes=clashes,
    leftovers=chains.leftovers,
    impairs=impairs,
    links=links,
    rejects=lambda targets, arguments: arguments.get("how") == "reject",
    only_messages=True,
    colour=Colour("#8a74c9", "#a593e0"),
    columns=(Column("partition", "partition", "Under partitions", 3),),
    axes=(
        FaultAxis(
            "cut",
            "cut",
            "how long a client is cut off from the servers, and not from the resource",
            TIME_S,
            0.05,
            600,
            _cut_off,
            SHORT,
        ),
    ),
)
