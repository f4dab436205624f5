"""What may strike before a step, other than that the run goes on: the faults as decisions.

The table of a setting lists its actions, each family's from the simplest on, so that a schedule is
a list of numbers and smaller numbers are simpler faults. An action that finds nothing to strike
does nothing; one that is about a message waits for the next.

Times are chosen by what a lease makes of them: most of it, or more than all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from fencepost.hunt.faults.deaths import crash, fail_over, kill_client, primary
from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.sim.network import Request, Server
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS, Event, Node, Timer
from fencepost.nemesis.memory import POLICIES

if TYPE_CHECKING:
    from fencepost.hunt.run import Run

KINDS = (
    "clock", "pause", "partition", "delay", "drop", "duplicate", "kill", "power", "failover",
    "memory",
)  # fmt: skip
"""The faults that a hunt may be asked for."""
FAMILY = {"drop": "packet", "duplicate": "packet"}
"""The families of those that are not called as theirs is (nemesis/families.py)."""

Strike = Callable[["Run", Event | None], bool]
"""Strikes, and says whether it did: False waits for the next event."""


@dataclass(frozen=True)
class Action:
    """One fault that may strike. Faults with the same `way` differ only in their node and in how
    long they last. `client`: the client that it strikes, if it strikes one."""

    kind: str
    way: str
    strike: Strike
    client: int | None = None


def table(setting: Setting) -> list[Action]:
    """The actions of a setting; number n of a schedule is the one at n - 1."""
    return [action for kind in KINDS if kind in setting.faults for action in _MAKE[kind](setting)]


def seconds(ns: int) -> str:
    return f"{ns / 1e9:.3g} s" if ns >= 1_000_000_000 else f"{ns / 1e6:.3g} ms"


# Clocks.


def _clock(setting: Setting) -> Iterator[Action]:
    ttl = setting.ttl_ns
    jumps = (ttl * 11 // 10, -ttl * 11 // 10, ttl // 2)
    for by in jumps:
        for server in range(len(setting.servers)):
            yield Action("clock", "jump", _jump(server, by))
    for rate in (3.0, 0.5):
        for server in range(len(setting.servers)):
            yield Action("clock", "drift", _drift(server, rate))
    for server in range(len(setting.servers)):
        yield Action("clock", "strobe", _strobe(server, ttl * 11 // 10, 150 * MS))


def _right(run: Run, server: Server) -> Callable[[], None]:
    def undo() -> None:
        server.settle()
        server.clock.right(run.world.now)

    return undo


def _jump(index: int, by: int) -> Strike:
    def strike(run: Run, event: Event | None) -> bool:
        server = run.servers[index]
        server.settle()
        server.clock.jump(run.world.now, by)
        where = "ahead" if by > 0 else "back"
        words = f"the clock of {server.name} jumps {where} by {seconds(abs(by))}"
        arguments = {"offset_s": by / 1e9}
        run.faults.begin("clock", [server.name], arguments, words, _right(run, server))
        return True

    return strike


def _drift(index: int, rate: float) -> Strike:
    def strike(run: Run, event: Event | None) -> bool:
        server = run.servers[index]
        server.settle()
        server.clock.drift(run.world.now, rate)
        words = f"the clock of {server.name} runs at {rate:g} times its rate"
        arguments = {"kind": "drift", "rate": rate}
        run.faults.begin("clock", [server.name], arguments, words, _right(run, server))
        return True

    return strike


def _strobe(index: int, by: int, period: int) -> Strike:
    def strike(run: Run, event: Event | None) -> bool:
        server, world = run.servers[index], run.world
        words = f"the clock of {server.name} is {seconds(by)} ahead and right in turns"
        arguments = {"kind": "strobe", "offset_s": by / 1e9, "period_s": period / 1e9}
        name = run.faults.begin("clock", [server.name], arguments, words, _right(run, server))
        ahead = False

        def turn() -> None:
            nonlocal ahead
            if name in run.faults.on:
                server.settle()
                server.clock.jump(world.now, -by if ahead else by)
                ahead = not ahead
                world.at(world.now + period, Timer(world.nowhere, turn))

        turn()
        return True

    return strike


# Pauses.


def _pause(setting: Setting) -> Iterator[Action]:
    ttl = setting.ttl_ns
    for lasts in (ttl * 11 // 10, ttl // 2):
        for client in range(len(setting.clients)):
            yield Action("pause", "client", _pause_client(client, lasts), client)
        for server in range(len(setting.servers)):
            yield Action("pause", "server", _pause_server(server, lasts))


def _pause_client(index: int, lasts: int) -> Strike:
    def strike(run: Run, event: Event | None) -> bool:
        return _paused(run, run.clients[index], lasts)

    return strike


def _pause_server(index: int, lasts: int) -> Strike:
    def strike(run: Run, event: Event | None) -> bool:
        return _paused(run, run.servers[index], lasts)

    return strike


def _paused(run: Run, node: Node, lasts: int) -> bool:
    until = run.world.now + lasts
    if not node.up or node.paused_until > run.world.now:
        return True
    node.paused_until = until
    words = f"{node.name} is paused for {seconds(lasts)}"
    run.faults.begin("pause", [node.name], {}, words, lambda: None, lasts)
    return True


# Cuts.


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
                    yield Action("partition", way, _cut(some, group, way, lasts))
    if setting.replicated:
        yield Action("partition", "replication", _cut_replica())


def _cut(clients: Sequence[int], servers: Sequence[int], way: str, lasts: int | None) -> Strike:
    def strike(run: Run, event: Event | None) -> bool:
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
        # What is cut already is another fault's.
        mine = [[end for end in ends if end not in cut] for cut in cuts]
        if not any(mine):
            return True
        for cut, new in zip(cuts, mine, strict=True):
            cut.update(new)

        def undo() -> None:
            for cut, new in zip(cuts, mine, strict=True):
                cut.difference_update(new)

        near = [run.clients[client].name for client in clients]
        far = [run.servers[server].name for server in servers]
        arguments: dict[str, object] = {"links": [[a, b] for a in near for b in far]}
        told = " and ".join(near), ", ".join(far)
        words = f"{told[0]} {'is' if len(near) == 1 else 'are'} cut off from {told[1]}"
        if way != "both":
            arguments["lost"] = way
            what = "the requests of" if way == "requests" else "the replies to"
            words = f"{what} {told[0]} are lost: {told[1]}"
        run.faults.begin("partition", [*near, *far], arguments, words, undo, lasts)
        return True

    return strike


def _cut_replica() -> Strike:
    def strike(run: Run, event: Event | None) -> bool:
        old = primary(run)
        if old is None or old.cut or old.replica is None:
            return True
        old.cut = True
        names = [old.name, old.replica.name]
        words = f"{names[1]} is cut off from {names[0]}"
        run.faults.begin("partition", names, {"links": [names]}, words, old.reconnect)
        return True

    return strike


# Messages.


def _delay(setting: Setting) -> Iterator[Action]:
    timeout = int(setting.options.get("node_timeout_ms", 50)) * MS
    for by in (setting.ttl_ns * 11 // 10, timeout * 3 // 2, timeout // 2, setting.ttl_ns // 2):
        yield Action("delay", "message", _late(by))


def _late(by: int) -> Strike:
    def strike(run: Run, event: Event | None) -> bool:
        if not isinstance(event, Request) or event.node.paused_until > run.world.now:
            return False
        source, to = run.ends(event)
        # It is this very message, for as long as it takes: a copy is what arrives.
        event.off = True
        world = run.world
        late = event.later()
        if late.back:
            late.arrives = world.now + by
        event.link.moved(event, late)
        world.at(world.now + by, late)
        words = f"{run.told(event)} is held back for {seconds(by)}"
        run.faults.begin(
            "delay", [source, to], {"source": source, "to": to}, words, lambda: None, by
        )
        return True

    return strike


def _drop(setting: Setting) -> Iterator[Action]:
    yield Action("drop", "message", _lost)


def _lost(run: Run, event: Event | None) -> bool:
    # What the store answers arrives, or a client would wait for it for two minutes.
    if not isinstance(event, Request) or event.server is run.storage:
        return False
    source, to = run.ends(event)
    event.off = True
    words = f"{run.told(event)} is lost"
    arguments = {"kind": "loss", "source": source, "to": to}
    run.faults.begin("packet", [source], arguments, words, lambda: None, 0)
    return True


def _duplicate(setting: Setting) -> Iterator[Action]:
    for by in (1 * MS, setting.ttl_ns // 2):
        yield Action("duplicate", "message", _twice(by))


def _twice(by: int) -> Strike:
    def strike(run: Run, event: Event | None) -> bool:
        if not isinstance(event, Request) or event.back:
            return False
        source, _ = run.ends(event)
        world = run.world
        world.at(world.now + by, event.later())
        words = f"{run.told(event)} arrives a second time, {seconds(by)} later"
        run.faults.begin("packet", [source], {"kind": "duplicate"}, words, lambda: None, by)
        return True

    return strike


# Crashes.


def _kill(setting: Setting) -> Iterator[Action]:
    for server in range(len(setting.servers)):
        yield Action("kill", "server", _crash(server, power=False))
    for client in range(len(setting.clients)):
        yield Action("kill", "client", _kill_client(client), client)


def _power(setting: Setting) -> Iterator[Action]:
    for server in range(len(setting.servers)):
        yield Action("power", "server", _crash(server, power=True))


def _crash(index: int, power: bool) -> Strike:
    def strike(run: Run, event: Event | None) -> bool:
        server = run.servers[index]
        if server.up:
            crash(run, server, power)
        return True

    return strike


def _kill_client(index: int) -> Strike:
    def strike(run: Run, event: Event | None) -> bool:
        # Somebody has to be left to ask for the lock.
        if sum(client.up for client in run.clients) > 1 and run.clients[index].up:
            kill_client(run, run.clients[index])
        return True

    return strike


def _failover(setting: Setting) -> Iterator[Action]:
    yield Action("failover", "server", _fail_over)


def _fail_over(run: Run, event: Event | None) -> bool:
    fail_over(run)
    return True


def _memory(setting: Setting) -> Iterator[Action]:
    for policy in POLICIES:
        for server in range(len(setting.servers)):
            yield Action("memory", policy, _run_out(server, policy))


def _run_out(index: int, policy: str) -> Strike:
    def strike(run: Run, event: Event | None) -> bool:
        server = run.servers[index]
        assert isinstance(server, RedisServer)
        if not server.up:
            return True
        words = f"{server.name} runs out of memory under {policy}"
        if policy == "noeviction":
            server.limit(True)
        else:
            server.run_out()
            words += ", and evicts what it had"
        arguments = {"policy": policy}
        run.faults.begin("memory", [server.name], arguments, words, lambda: server.limit(False))
        return True

    return strike


_MAKE: dict[str, Callable[[Setting], Iterator[Action]]] = {
    "clock": _clock,
    "pause": _pause,
    "partition": _partition,
    "delay": _delay,
    "drop": _drop,
    "duplicate": _duplicate,
    "kill": _kill,
    "power": _power,
    "failover": _failover,
    "memory": _memory,
}
