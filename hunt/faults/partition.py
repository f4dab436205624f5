"""Cuts simulated links, both ways or one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations

from fencepost.hunt.faults.failover import primary
from fencepost.hunt.faults.simulated import Action, Simulated
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event


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


def _cut(
    clients: Sequence[int],
    servers: Sequence[int],
    way: str,
    lasts: int | None,
    run: Run,
    event: Event | None,
) -> None:
    ends = [
        (run.clients[client].index, run.servers[server].index)
        for client in clients
        for server in servers
    ]
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

    near = [run.clients[client].name for client in clients]
    far = [run.servers[server].name for server in servers]
    arguments: dict[str, object] = {"links": [[a, b] for a in near for b in far]}
    clients_named, servers_named = " and ".join(near), ", ".join(far)
    verb = "is" if len(near) == 1 else "are"
    words = f"{clients_named} {verb} cut off from {servers_named}"
    if way != "both":
        arguments["lost"] = way
        what = "the requests of" if way == "requests" else "the replies to"
        words = f"{what} {clients_named} are lost: {servers_named}"
    run.faults.begin("partition", [*near, *far], arguments, words, undo, lasts)


def _cut_replica(run: Run, event: Event | None) -> None:
    old = primary(run)
    if old is None or old.cut or old.replica is None:
        return
    old.cut = True
    names = [old.name, old.replica.name]
    words = f"{names[1]} is cut off from {names[0]}"
    run.faults.begin("partition", names, {"links": [names]}, words, old.reconnect)


SIMULATED = Simulated("partition", _partition)
