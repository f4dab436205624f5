"""Connections to a MariaDB server as harness/servers/mariadb.py sets it up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fencepost.workloads.transport.deferred import Deferred

if TYPE_CHECKING:
    import pymysql
else:
    pymysql = Deferred("pymysql")


def connected(address: tuple[str, int], timeout_s: float) -> pymysql.Connection[Any]:
    """Connect, with autocommit. `timeout_s`: for connecting, and for each read and write.

    Raises:
        OSError, pymysql.MySQLError: there is no connection.
    """
    host, port = address
    return pymysql.connect(
        host=host,
        port=port,
        user="fencepost",
        database="fencepost",
        autocommit=True,
        connect_timeout=timeout_s,
        read_timeout=timeout_s,
        write_timeout=timeout_s,
    )
