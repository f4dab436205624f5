"""Cuts simulated links, both ways or one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations

from fencepost.hunt.faults.failover import primary
from fencepost.hunt.faults.simulated import Action, Inject, Simulated
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.targets import Drawn

SPLIT = "split"
"""The way of a partition that separates clients and servers into two groups."""
OUTAGE = "outage"
"""The way of a partition that ends after a client's lease, while clients still work."""
_LASTS = 7 / 4
"""How long an outage lasts, in leases. ZooKeeper's clients notice one after 2/3, and Curator gives
up a session after 1 more; the servers keep it for 1 more, because they hear it ask until then."""
_TWO = 2


def _partition(setting: Setting) -> Iterator[Action]:
    servers, clients = len(setting.servers), len(setting.clients)
    who: list[Sequence[int]] = [(client,) for client in range(clients)]
    who.append(tuple(range(clients)))
    sizes = [size for size in range(1, servers + 1) if size <= servers // 2 or size == servers]
    groups = [group for size in sizes for group in combinations(range(servers), size)]
    for way in ("both", "replies", "requests"):
        for lasts in (None, setting.ttl_ns // 2):
            for some in who:
                for group in groups:
                    yield Action("partition", way, partial(_cut, some, group, way, lasts))
    if setting.replicated:
        yield Action("partition", "replication", _cut_replica)
    if setting.live and servers > 2:
        # It takes three cuts, which a search with few schedules does not draw together.
        for size in (servers // 2 + 1, servers - servers // 2 - 1):
            for group in combinations(range(servers), size):
                yield Action("partition", SPLIT, partial(_split, group))
    lost = MODELS[setting.model].outage
    if setting.live and lost:
        every, lasts = tuple(range(servers)), round(_LASTS * setting.lease_ns)
        for client in range(clients):
            cut = partial(_cut, (client,), every, lost, lasts)
            yield Action("partition", OUTAGE, cut, client)


def _cut(
    clients: Sequence[int],
    servers: Sequence[int],
    way: str,
    lasts: int | None,
    run: Run,
    event: Event | None,
) -> None:
    near = [run.clients[client].name for client in clients]
    far = [run.servers[server].name for server in servers]
    clients_named, servers_named = " and ".join(near), ", ".join(far)
    verb = "is" if len(near) == 1 else "are"
    words = f"{clients_named} {verb} cut off from {servers_named}"
    if way != "both":
        what = "the requests of" if way == "requests" else "the replies to"
        words = f"{what} {clients_named} are lost: {servers_named}"
    pairs = [(client, server) for client in clients for server in servers]
    _cut_links(pairs, [*near, *far], way, words, lasts, run)


def _split(side: Sequence[int], run: Run, event: Event | None) -> None:
    """Cut client-1 off from all servers but those of its side, and the others from these."""
    clients, servers = run.clients, run.servers
    rest = [server for server in range(len(servers)) if server not in side]
    pairs = [(0, server) for server in rest]
    pairs += [(client, server) for client in range(1, len(clients)) for server in side]
    mine = ", ".join(servers[server].name for server in side)
    theirs = ", ".join(servers[server].name for server in rest)
    others = " and ".join(client.name for client in clients[1:])
    verb = "reaches" if len(clients) == _TWO else "reach"
    words = f"{clients[0].name} reaches only {mine}, and {others} {verb} only {theirs}"
    targets = [one.name for one in (*clients, *servers)]
    _cut_links(pairs, targets, "both", words, None, run)


def _cut_links(
    pairs: Sequence[tuple[int, int]],
    targets: list[str],
    way: str,
    words: str,
    lasts: int | None,
    run: Run,
) -> None:
    """Cut the links between these clients and servers, by their places."""
    ends = [(run.clients[client].index, run.servers[server].index) for client, server in pairs]
    network = run.network
    cuts = [
        cut
        for cut, side in ((network.requests_cut, "requests"), (network.replies_cut, "replies"))
        if way in ("both", side)
    ]
    # A link that is cut already belongs to another fault.
    mine = [[end for end in ends if end not in cut] for cut in cuts]
    if not any(mine):
        return
    for cut, new in zip(cuts, mine, strict=True):
        cut.update(new)

    def undo() -> None:
        for cut, new in zip(cuts, mine, strict=True):
            cut.difference_update(new)

    links = [[run.clients[client].name, run.servers[server].name] for client, server in pairs]
    arguments: dict[str, object] = {"links": links}
    if way != "both":
        arguments["lost"] = way
    run.faults.begin("partition", targets, arguments, words, undo, lasts)


def _cut_replica(run: Run, event: Event | None) -> None:
    old = primary(run)
    if old is None or old.cut or old.replica is None:
        return
    old.cut = True
    names = [old.name, old.replica.name]
    words = f"{names[1]} is cut off from {names[0]}"
    run.faults.begin("partition", names, {"links": [names]}, words, old.reconnect)


def _drawn(drawn: Drawn, lasts: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        index = {one.name: one.index for one in (*run.servers, *run.clients, run.storage)}
        clients = {client.name for client in run.clients}
        ends = []
        for pair in drawn.arguments["links"]:
            client, server = pair if pair[0] in clients else (pair[1], pair[0])
            if client in clients and server in index:
                ends.append((index[client], index[server]))
        lost, network = drawn.arguments.get("lost", "both"), run.network
        cuts = [
            (cut, [end for end in ends if end not in cut])
            for cut, side in ((network.requests_cut, "requests"), (network.replies_cut, "replies"))
            if lost in ("both", side)
        ]
        for cut, new in cuts:
            cut.update(new)

        def undo() -> None:
            for cut, new in cuts:
                cut.difference_update(new)

        words = f"{drawn.targets[0]} is cut off"
        run.faults.begin("partition", drawn.targets, drawn.arguments, words, undo, lasts)
        return True

    return inject


def _lacks(asked: Asked, setting: Setting) -> str:
    return "the simulated world has no partition/reject" if asked.variant == "reject" else ""


SIMULATED = Simulated("partition", _partition, drawn=_drawn, lacks=_lacks)
