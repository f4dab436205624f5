"""The faults of a run: drawn at random, or where a defect needs them."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.simulated.plan import DOWN, Plan, Strike
from tests.simulated.resource import STORAGE
from tests.simulated.world import MS, SECOND

POINTS = ("granted", "acquired", "before-write", "before-release", "replies-in-flight")
ANYWHERE = ("begun", "before-request", "answered")
"""Failpoints of a client: those of a hold, and those of every op."""
SHARED = ("partition", "delay", "meteor")
"""Families that may hit a node together with any other; of the rest, one at a time."""


def late(random: Random, plan: Plan) -> list[Strike]:
    """Clients stopped past their leases: grants come late, writes and releases later still."""
    points = [*POINTS, "before-write"]
    if plan.defect == "releases_foreign":
        points += ["before-release"] * 5
    nodes = plan.asking[:-1] or plan.asking
    return [
        Strike(
            at=random.randrange(300, 1500) * MS + turn * 3 * plan.ttl,
            duration=int(plan.ttl * random.uniform(1.3, 2.5)),
            family="pause",
            targets=(random.choice(nodes),),
            point=random.choice(points),
        )
        for turn in range(3)
    ]


def deaths(random: Random, plan: Plan) -> list[Strike]:
    points = ("acquired", "before-write", "before-release")
    return [
        Strike(
            at=random.randrange(500, 2500) * MS,
            duration=random.randrange(100, 400) * MS,
            family="kill",
            targets=(random.choice(plan.asking),),
            point=random.choice(points),
        )
    ]


def held(random: Random, plan: Plan) -> list[Strike]:
    """A holder stopped for so long that its lease must end by itself."""
    return [
        Strike(
            at=random.randrange(500, 2000) * MS,
            duration=3 * plan.ttl + plan.bound + 4000 * MS,
            family="pause",
            targets=(random.choice(plan.asking),),
            point=random.choice(("acquired", "before-write", "before-release")),
        )
    ]


def slow(random: Random, plan: Plan) -> list[Strike]:
    """Clients stopped while the answers to an acquire are on their way."""
    return [
        Strike(
            at=random.randrange(300, 1500) * MS + turn * 3 * plan.ttl,
            duration=int(plan.ttl * random.uniform(0.8, 1.5)),
            family="pause",
            targets=(random.choice(plan.asking),),
            point=random.choice(("replies-in-flight", "granted")),
        )
        for turn in range(4)
    ]


def between(random: Random, plan: Plan) -> list[Strike]:
    """Clients stopped between the check and the delete of their releases."""
    return [
        Strike(
            at=random.randrange(300, 1500) * MS + turn * 3 * plan.ttl,
            duration=int(plan.ttl * random.uniform(1.2, 1.8)),
            family="pause",
            targets=(random.choice(plan.asking),),
            point="between-check-and-delete",
        )
        for turn in range(4)
    ]


def restarts(random: Random, plan: Plan) -> list[Strike]:
    """Servers killed and started again at once, together a majority."""
    return [
        Strike(
            at=random.randrange(500, 900) * MS + turn * 1000 * MS,
            duration=random.randrange(50, 150) * MS,
            family="kill",
            targets=tuple(plan.server_names[: plan.servers // 2 + 1]),
            arguments={"data": "kept"},
        )
        for turn in range(4)
    ]


def stalls(random: Random, plan: Plan) -> list[Strike]:
    """A majority of the servers stopped, so that answers come late."""
    return [
        Strike(
            at=random.randrange(500, 900) * MS + turn * 2000 * MS,
            duration=random.randrange(800, 900) * MS,
            family="pause",
            targets=tuple(plan.server_names[: plan.servers // 2 + 1]),
        )
        for turn in range(3)
    ]


def clocks(random: Random, plan: Plan) -> list[Strike]:
    """Wall clocks of some servers set ahead, and back."""
    return [
        Strike(
            at=random.randrange(500, 900) * MS + turn * 1500 * MS,
            duration=random.randrange(300, 900) * MS,
            family="clock",
            targets=tuple(plan.server_names[: plan.servers // 2 + 1]),
            arguments={"kind": "jump", "clock": "wall", "offset_ms": 5000},
        )
        for turn in range(3)
    ]


def outage(random: Random, plan: Plan) -> list[Strike]:
    """All clients cut off from all servers for a while."""
    links = [[client, server] for client in plan.client_names for server in plan.server_names]
    return [
        Strike(
            at=random.randrange(1000, 2000) * MS,
            duration=random.randrange(1000, 2000) * MS,
            family="partition",
            targets=(*plan.client_names, *plan.server_names),
            arguments={"links": links, "how": "reject"},
        )
    ]


def bystander(plan: Plan, length: int, found: list[Strike]) -> list[Strike]:
    """A client that asks for nothing, stopped for 1 s every 4 s, where no other fault hits it."""
    stops = (
        Strike(at, SECOND, "pause", (plan.client_names[-1],))
        for at in range(500 * MS, length, 4 * SECOND)
    )
    return [stop for stop in stops if not any(meet(stop, other) for other in found)]


def any_kind(random: Random, plan: Plan, few: bool) -> list[Strike]:
    """Faults of any family, none twice on a node at one time."""
    count = random.choice((0, 0, 1)) if few else random.choice((0, 1, 2, 3, 4, 6))
    found: list[Strike] = []
    for _ in range(count):
        strike = _strike(random, plan)
        if strike is not None and not any(meet(strike, other) for other in found):
            found.append(strike)
    return found


def meet(one: Strike, other: Strike) -> bool:
    """Return whether two faults would hide each other's receipts."""
    if one.family in SHARED or other.family in SHARED:
        return False
    apart = 50 * MS
    between = (
        one.at < other.at + other.duration + apart and other.at < one.at + one.duration + apart
    )
    return between and bool(set(one.targets) & set(other.targets))


def _strike(random: Random, plan: Plan) -> Strike | None:
    servers, clients = plan.server_names, plan.client_names
    family = random.choice(
        ("partition", "partition", "delay", "packet", "pause", "pause", "pause", "kill", "kill")
        + ("server-pause", "server-down", "server-down", "cpu", "clock")
        + (("meteor",) if random.random() < (0.5 if plan.defect == "none" else 0.1) else ())
    )
    at, client = random.randrange(400, 4500) * MS, random.choice(clients)
    duration = random.randrange(50, 2500) * MS
    few = random.sample(servers, random.choice((1, 1, 1, len(servers))))
    if few != servers and random.random() < 0.3:
        duration = plan.ttl + plan.bound + random.randrange(200, 1500) * MS
    proved = random.random() > 0.03
    arguments: dict[str, Any] = {}
    point = ""
    match family:
        case "partition":
            links = _links(random, servers, clients)
            arguments = {"links": links, "how": random.choice(("drop", "reject"))}
            if arguments["how"] == "drop" and random.random() < 0.3:
                arguments["lost"] = random.choice(("requests", "replies"))
            targets = list(dict.fromkeys(node for link in links for node in link))
            if plan.ends_with == "connection" and random.random() < 0.5:
                duration += 2 * plan.ttl
        case "delay":
            to = STORAGE if random.random() < 0.6 else random.choice(servers)
            arguments, targets = {"source": client, "to": to}, [client, to]
        case "packet":
            arguments = {"kind": random.choice(("delay", "loss", "reorder"))}
            targets = [random.choice((*servers, client))]
        case "pause" | "kill":
            targets = [client]
            point = random.choice(("", *POINTS, *ANYWHERE, "granted"))
            proved = proved or family == "kill"
            if family == "kill":
                duration = random.randrange(50, 1500) * MS
        case "server-pause":
            family, targets = "pause", few
        case "server-down":
            family, targets = random.choice(DOWN), few
            arguments = {"data": "kept"} if family == "kill" else {}
        case "clock":
            arguments = {"kind": "jump", "clock": "wall", "offset_ms": 5000}
            targets = [random.choice((*servers, *clients))]
        case "meteor":
            # An unknown family: it cuts a client off, and records nothing about it.
            targets = [client]
        case _:
            targets = few
    return Strike(at, duration, family, tuple(targets), arguments, point, proved)


def _links(random: Random, servers: list[str], clients: list[str]) -> list[list[str]]:
    shape = random.choice(("client", "client", "storage", "server", "halves"))
    client = random.choice(clients)
    if shape == "client":
        some = random.choice((random.randint(1, len(servers)), len(servers)))
        return [[client, to] for to in random.sample(servers, some)]
    if shape == "storage":
        return [[client, STORAGE]]
    if shape == "server":
        alone = random.choice(servers)
        others = [node for node in (*servers, *clients) if node != alone]
        return [[alone, node] for node in others]
    near = set(random.sample(servers, len(servers) // 2)) | set(clients[::2])
    everybody = (*servers, *clients)
    links = [
        [one, other]
        for one in everybody
        for other in everybody
        if one in near and other not in near and not {one, other} <= set(clients)
    ]
    return links or [[client, servers[0]]]
