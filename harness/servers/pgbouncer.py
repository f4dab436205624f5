"""Defines PgBouncer in front of PostgreSQL, which exists in hunts only."""

from __future__ import annotations

from fencepost.node.kind import Kind


def _health() -> bool:
    raise OSError("fencepost does not start PgBouncer")


KIND = Kind(
    name="pgbouncer",
    module=__name__,
    port=6432,
    health=_health,
    model="pgbouncer",
    ends_with="connection",
    hunts_only=True,
)
