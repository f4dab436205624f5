"""The shapes of partitions: which links each cuts."""

from __future__ import annotations

from random import Random

from fencepost.nemesis.targets import PRIMARY, STORAGE, Layout, pick

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
SIDES = ("halves", "random-halves", "one", "minority", "majority", PRIMARY)
"""Shapes that cut some nodes off from all others."""
_OF_THREE = ("ring", "bridge", "halves", "random-halves", "clients")


def possible(at: Layout) -> list[str]:
    """Return the shapes that a layout can have."""
    without = [] if at.leads else [PRIMARY]
    without += _OF_THREE if len(at.servers) < 3 else ()
    return [shape for shape in SHAPES if shape not in without]


def must_fit(shape: str, at: Layout) -> None:
    """Raise ValueError if the layout cannot have this shape."""
    if shape == PRIMARY:
        at.must_lead()
    if shape in _OF_THREE and len(at.servers) < 3:
        raise ValueError(f"{shape} needs three servers or more, but there are {len(at.servers)}")


def cut_links(random: Random, at: Layout, shape: str) -> list[list[str]]:
    """Return the links to cut. If one side is cut off from the rest, its nodes come first in
    them."""
    match shape:
        case "halves" | "random-halves":
            servers, clients = list(at.servers), list(at.clients)
            if shape == "random-halves":
                random.shuffle(servers)
                random.shuffle(clients)
            return _sides(at, [*servers[: len(servers) // 2], *clients[::2]])
        case "ring":
            return _ring(random, at)
        case "bridge":
            servers = random.sample(at.servers, len(at.servers))
            middle, rest = servers[0], servers[1:]
            one = [*rest[: len(rest) // 2], *at.clients[::2]]
            return [link for link in _sides(at, one) if middle not in link]
        case "client":
            client = random.choice(at.clients)
            lost = random.sample(at.servers, random.randint(1, len(at.servers)))
            return [[client, server] for server in lost]
        case "clients":
            return _majorities(at, random.sample(at.servers, len(at.servers)))
        case "storage":
            return [[random.choice(at.clients), STORAGE]]
        case "requests" | "replies":
            client = random.choice(at.clients)
            to = random.sample(at.servers, random.randint(1, max(1, len(at.servers) // 2 + 1)))
            return [[client, server] for server in to]
        case "primary":
            return [[PRIMARY, node] for node in (*at.servers, *at.clients)]
    return _sides(at, pick(random, at, shape))


def _sides(at: Layout, one: list[str]) -> list[list[str]]:
    """Return the links between these nodes and all the others; clients have none to one another."""
    others = [node for node in (*at.servers, *at.clients) if node not in one]
    pairs = [[near, far] for near in one for far in others]
    return [pair for pair in pairs if not set(pair) <= set(at.clients)]


def _ring(random: Random, at: Layout) -> list[list[str]]:
    """Return Jepsen's majorities ring: each server sees a majority, its neighbours; so does each
    client.

    With three servers each sees all: no two of three majorities leave a link to cut.
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
    """Cut each client off from all but a majority of the servers, a different one each."""
    most = len(ring) // 2 + 1
    return [
        [client, ring[(number + place) % len(ring)]]
        for number, client in enumerate(at.clients)
        for place in range(most, len(ring))
    ]
