"""What is drawn for one run: the lock, its clients, the guard, the network and the faults.

Sound runs are drawn as widely as they come. A run with a defect is drawn where that defect can
occur (`needs`), and otherwise just as widely.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from simulated.defects import KINDS
from simulated.resource import STORAGE
from simulated.world import MS, SECOND

ENDS_WITH = ("lease", "close", "connection")
POINTS = ("granted", "acquired", "before-write", "before-release", "replies-in-flight")
ANYWHERE = ("begun", "before-request", "answered")
"""Points of a client's code: those of a hold, and those of every op."""
SHARED = ("partition", "hold", "meteor")
"""Families that may strike a node beside any other; of the rest, one at a time."""
DOWN = ("kill", "power", "leave", "memory", "disk", "failover")
"""Families by which a server does not serve. A sound service keeps what it has granted."""


@dataclass(frozen=True)
class Strike:
    """One fault, in ns. `point`: where in its code a client is to be stopped or killed."""

    at: int
    duration: int
    family: str
    targets: tuple[str, ...]
    arguments: dict[str, Any] = field(default_factory=dict)
    point: str = ""
    proved: bool = True


@dataclass(frozen=True)
class Plan:
    """Times in ns. What each setting does is said where it is used."""

    ends_with: str
    defect: str
    clients: int
    servers: int
    locks: int
    length: int
    ttl: int
    bound: int
    wait: int
    timeout: int
    storage_timeout: int
    think: int
    rest: int
    shared: float
    tokens: str
    guard: str
    promises: dict[str, bool]
    loss: float = 0.0
    errors: tuple[int, ...] = ()
    error_bound: int = 0
    failed_release: str = "ended"
    one_resource: bool = False
    nameless: bool = False
    silent_close: bool = False
    careful: bool = False
    watchdog: bool = False
    watches: bool = True
    polite: bool = False
    twice: float = 0.0
    uneven: bool = False
    confirm: bool = False
    naive: bool = False
    visible: bool = True
    wakeups: bool = False
    tells_facts: bool = True
    extends: float = 0.3
    lingers: float = 0.1
    crash: int = 0
    cut_off: int = 0
    strikes: tuple[Strike, ...] = ()

    @property
    def server_names(self) -> list[str]:
        return [f"server-{n + 1}" for n in range(self.servers)]

    @property
    def client_names(self) -> list[str]:
        return [f"client-{n + 1}" for n in range(self.clients)]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each lock with the resource that it protects."""
        one = self.one_resource
        return [(f"lock-{n}", f"account-{1 if one else n}") for n in range(1, self.locks + 1)]

    def test(self) -> dict[str, Any]:
        """The test.json of the run."""
        lock: dict[str, Any] = {"name": "simulated", "options": {}, "ends_with": self.ends_with}
        not_checked = {}
        if self.shared:
            not_checked["linearizable"] = "shared holds with leases have no model"
        if self.tokens == "none":
            not_checked["fencing"] = "the lock hands out no token"
        every = (
            *("lease_exclusion", "linearizable", "mutual_exclusion", "fencing", "ownership"),
            *("liveness", "store", "resource"),
        )
        row: dict[str, Any] = {
            "name": "simulated",
            "lock": lock,
            "guard": self.guard,
            "servers": self.server_names,
            "clients": self.client_names,
            "locks": self.locks,
            "concurrency": self.clients,
            "ttl_ms": self.ttl // MS,
            "failed_release": self.failed_release,
            "liveness_bound_s": self.bound / SECOND,
            "promises": self.promises,
            "nemesis": sorted({strike.family for strike in self.strikes}),
            "checkers": [name for name in every if name not in not_checked],
            "not_checked": not_checked,
        }
        if self.error_bound:
            row["clocks"] = {
                node: {"offset_ns": 0, "bound_ns": self.error_bound} for node in self.client_names
            }
        return row


def draw(random: Random, ends_with: str, defect: str = "none") -> Plan:
    """A plan for a service whose holds end in this way."""
    needs = KINDS[defect].needs
    crowd = "crowd" in needs
    sessions = ends_with != "lease"
    ttl = random.randrange(400, 1100) * MS
    lossy = random.random() < 0.15 and not crowd and "deaths" not in needs
    tokens = random.choice(("own", "own", "shared", "none"))
    if "tokens" in needs and tokens == "none":
        tokens = "own"
    guards = ["none", "compare-and-set", *(["fenced"] if tokens != "none" else [])]
    guard = random.choice(guards)
    if "fenced" in needs:
        guard = "fenced"
    elif "refuses" in needs and guard == "none":
        guard = guards[-1]
    shared = random.choice((0.3, 0.5)) if random.random() < 0.25 else 0.0
    if "shared" in needs:
        shared = 0.5
    elif crowd or ("linearizable" in KINDS[defect].must and random.random() < 0.7):
        shared = 0.0
    clients = random.choice((4, 5)) if crowd else random.choice((2, 3, 3, 4))
    bound = ttl + (25_000 if lossy else 1_600) * MS
    tells = sessions and not lossy
    servers = 3 if random.random() < 0.7 else 1
    error_bound = random.choice((0, 0, 0, 0, 1, 4)) * MS
    polite = random.random() < 0.25
    promises = {
        "minority": servers == 3 and not lossy,
        "fifo": tells,
        "one_wakeup": tells,
    }
    nameless = not sessions and random.random() < 0.1
    failed_release = "nothing" if random.random() < 0.15 else "ended"
    uneven = not sessions and random.random() < 0.1
    plan = Plan(
        ends_with=ends_with,
        defect=defect,
        clients=clients,
        servers=servers,
        locks=1 if crowd else random.choice((1, 1, 1, 2)),
        length=random.randrange(5000, 8000) * MS,
        ttl=ttl,
        bound=bound,
        wait=random.randrange(500, 3500) * MS,
        timeout=random.randrange(300, 500) * MS,
        storage_timeout=random.choice((300, 600, 1500)) * MS,
        think=random.choice((100, 400, 800)) * MS,
        rest=random.choice((300, 1000, 2500)) * MS,
        shared=shared,
        tokens=tokens,
        guard=guard,
        promises=promises,
        loss=0.03 if lossy else 0.0,
        errors=tuple(random.randint(-error_bound, error_bound) for _ in range(clients)),
        error_bound=error_bound,
        failed_release=failed_release,
        one_resource=random.random() < 0.3,
        nameless=nameless,
        # A hold that goes on after its release has failed would end with a close that nobody saw.
        silent_close=failed_release == "ended" and random.random() < 0.15,
        careful=random.random() < 0.5,
        # What renews in the background knows nothing of a longer lease that was asked for since.
        watchdog=not sessions and not nameless and not uneven and random.random() < 0.3,
        watches=random.random() < 0.8,
        polite=polite,
        twice=0.2 if not sessions and not polite and not nameless else 0.0,
        uneven=uneven,
        confirm=random.random() < 0.5,
        naive=ends_with == "close" and random.random() < 0.5,
        visible=ends_with != "connection" or random.random() < 0.5,
        wakeups=sessions and random.random() < 0.7,
        tells_facts=random.random() < 0.8,
        crash=random.randrange(1000, 5000) * MS if random.random() < 0.08 else 0,
        # The harness is killed, and leaves what it saw.
        cut_off=random.randrange(1000, 8000) * MS
        if defect == "none" and random.random() < 0.1
        else 0,
    )
    return _suited(random, plan, needs)


def _suited(random: Random, plan: Plan, needs: tuple[str, ...]) -> Plan:
    """The plan with its faults, and what its defect needs."""
    changed: dict[str, Any] = {}
    strikes = _strikes(random, plan, few="crowd" in needs)
    if "crowd" in needs:
        changed |= {"think": 500 * MS, "rest": 50 * MS, "wait": 6000 * MS, "lingers": 0.3}
    if "one_wakeup" in needs:
        changed["wakeups"] = True
    if "renewed" in needs:
        changed |= {"extends": 0.7, "visible": True, "watches": False}
    if "late" in needs:
        strikes += _late(random, plan)
    if "busy" in needs:
        changed |= {"rest": 100 * MS, "think": int(plan.ttl * 0.6), "locks": 1}
    if "deaths" in needs:
        strikes = _deaths(random, plan)
        # Whoever is left asks on and on, so that there is no doubt that the lock is dead.
        length = 3000 * MS + 3 * (plan.ttl + plan.bound)
        changed |= {"length": length, "crash": 0, "rest": 50 * MS, "locks": 1}
    last = max((s.at + s.duration for s in strikes), default=0)
    if random.random() < 0.7 and not plan.loss:
        # Long enough to see the lock come back after the last fault.
        length = changed.get("length", plan.length)
        changed["length"] = max(length, last + plan.ttl + plan.bound + 500 * MS)
    return replace(plan, strikes=tuple(sorted(strikes, key=lambda s: s.at)), **changed)


def _late(random: Random, plan: Plan) -> list[Strike]:
    """Clients stopped past their leases: grants come late, writes and releases later still."""
    points = [*POINTS, "before-write"]
    if plan.defect == "releases_foreign":
        points += ["before-release"] * 5
    nodes = plan.client_names[: max(1, plan.clients - 1)]
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


def _deaths(random: Random, plan: Plan) -> list[Strike]:
    points = ("acquired", "before-write", "before-release")
    return [
        Strike(
            at=random.randrange(500, 2500) * MS,
            duration=random.randrange(100, 400) * MS,
            family="kill",
            targets=(random.choice(plan.client_names),),
            point=random.choice(points),
        )
    ]


def _strikes(random: Random, plan: Plan, few: bool) -> list[Strike]:
    """Faults of any family, none twice on a node at one time."""
    count = random.choice((0, 0, 1)) if few else random.choice((0, 1, 2, 3, 4, 6))
    found: list[Strike] = []
    for _ in range(count):
        strike = _strike(random, plan)
        if strike is not None and not any(_meet(strike, other) for other in found):
            found.append(strike)
    return found


def _meet(one: Strike, other: Strike) -> bool:
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
        ("partition", "partition", "hold", "packet", "pause", "pause", "pause", "kill", "kill")
        + ("server-pause", "server-down", "server-down", "cpu", "clock")
        + (("meteor",) if plan.defect == "none" and random.random() < 0.5 else ())
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
        case "hold":
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
            # A family that nobody knows: it cuts a client off, and says nothing about it.
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
