"""The models of PostgreSQL: one server, alone or behind PgBouncer."""

from __future__ import annotations

from fencepost.hunt.models.model import Model
from fencepost.hunt.models.postgres.pooler import PgBouncer
from fencepost.hunt.models.postgres.server import PostgresServer
from fencepost.hunt.models.postgres.words import answered, asked
from fencepost.hunt.sim.network import Network, Server
from fencepost.hunt.sim.setting import Setting


def _servers(setting: Setting, network: Network) -> list[Server]:
    return [PostgresServer(name, index, network) for index, name in enumerate(setting.servers)]


def _pooled(setting: Setting, network: Network) -> list[Server]:
    return [PgBouncer(name, index, network) for index, name in enumerate(setting.servers)]


def _in_session(server: Server, at_ns: int) -> bool:
    """Whether a session kept a lock at this time."""
    assert isinstance(server, PostgresServer)
    return next((keeps for since, keeps in reversed(server.keeps) if since <= at_ns), False)


MODEL = Model(
    "postgres",
    title="PostgreSQL",
    servers=_servers,
    live=True,
    sockets=True,
    wall_leases=True,
    in_session=_in_session,
    asked=asked,
    answered=answered,
)
POOLED = Model(
    "pgbouncer", servers=_pooled, sockets=True, wall_leases=True, asked=asked, answered=answered
)
