"""CLIENT LIST and KILL, CONFIG and INFO at a Redis server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from fencepost.hunt.models.redis import information
from fencepost.hunt.models.redis.arguments import check_count
from fencepost.hunt.models.redis.audience import Audience
from fencepost.hunt.models.redis.commands import text
from fencepost.hunt.models.redis.notices import OPTION
from fencepost.hunt.models.redis.replies import OK, Verbatim
from fencepost.hunt.models.redis.session import Session
from fencepost.hunt.models.redis.store import Store
from fencepost.hunt.sim.clock import WallClock
from fencepost.hunt.sim.network import Network, Server, Wire
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import World

_FIRST_PORT = 40000


class Administered(Protocol):
    """What these commands need of a server."""

    index: int
    port: int
    store: Store
    clock: WallClock
    world: World
    network: Network
    persistence: str

    @property
    def audience(self) -> Audience: ...
    @property
    def primary(self) -> Server | None: ...
    @property
    def replica(self) -> Server | None: ...
    @property
    def blocked(self) -> int: ...
    def listen(self) -> None: ...
    def left(self, link: Wire) -> None: ...


def connections(server: Administered) -> Iterator[tuple[Session, str]]:
    """Yield each connection, with the address of its client. A client may have closed one with
    subscriptions that the server still knows."""
    found = {}
    for link in server.network.open[server.index]:
        session = getattr(link, "session", None)
        if isinstance(session, Session):
            found[session] = link.client.name
    for one in server.audience.pubsub.subscribers():
        if isinstance(one, Session) and one.line is not None:
            found.setdefault(one, one.line.client.name)
    for session, name in sorted(found.items(), key=lambda pair: pair[0].number):
        yield session, f"{name}:{_FIRST_PORT + session.number}"


def clients(server: Administered, args: list[str]) -> str:
    """Execute CLIENT LIST."""
    return information.clients(args, connections(server), server.clock.ms(server.world.now))


def disconnect(server: Administered, asking: Session, args: list[str]) -> Any:
    """Execute CLIENT KILL."""
    found, by_address = information.to_kill(args, asking, [*connections(server)])
    for session in found:
        if session is asking:
            session.over = True
        else:
            _hang_up(server, session)
    return OK if by_address else len(found)


def _hang_up(server: Administered, session: Session) -> None:
    server.audience.leave(session)
    session.over = True
    if session.line is not None:
        session.line.hang_up()
        return
    for link in [*server.network.open[server.index]]:
        if getattr(link, "session", None) is session:
            del server.network.open[server.index][link]
            server.left(link)
            link.reset()


def config(server: Administered, args: tuple[Any, ...]) -> Any:
    """Execute CONFIG."""
    word, *rest = [text(one) for one in args]
    if word.upper() == "GET":
        fsync = "everysec" if server.persistence == "none" else server.persistence
        aof = "no" if server.persistence == "none" else "yes"
        settings = information.Settings(aof, fsync)
        return settings.get(rest, str(server.audience.notices))
    if word.upper() == "SET":
        check_count("config|set", rest, 2, None)
        if len(rest) % 2:
            check_count("config|set", rest, len(rest) + 1, None)
        for name, value in zip(rest[::2], rest[1::2], strict=True):
            if name.lower() != OPTION:
                raise Unknown(f"the model of Redis has no setting {name} in CONFIG SET")
            server.audience.notices.set(value)
        server.listen()
        server.audience.look_in_time()
    return OK


def info(server: Administered, args: tuple[Any, ...]) -> Any:
    """Execute INFO."""
    fixed = information.fixed(server.index, server.port)
    store, pubsub, primary = server.store, server.audience.pubsub, server.primary
    replication: dict[str, Any] = {"role": "master" if primary is None else "slave"}
    if primary is not None:
        replication["master_host"] = primary.name
    replication["connected_slaves"] = int(server.replica is not None)
    keys, expires = len(store.values), len(store.expires)
    sections = {
        **fixed,
        "clients": {
            "connected_clients": len([*connections(server)]),
            "blocked_clients": server.blocked,
        },
        "persistence": {"loading": 0, "aof_enabled": int(server.persistence != "none")},
        "stats": {
            "pubsub_channels": len(pubsub.channels),
            "pubsub_patterns": len(pubsub.patterns),
        },
        "replication": replication,
        "keyspace": {"db0": f"keys={keys},expires={expires},avg_ttl=0"} if keys else {},
    }
    return Verbatim(information.info([text(one) for one in args], sections))
