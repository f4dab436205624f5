"""Defines PgBouncer with pool_mode = transaction, in front of a PostgreSQL server on its node.

Clients reach PostgreSQL through PgBouncer only. All other settings of PgBouncer are its defaults.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from dataclasses import replace

from fencepost.harness.servers import postgres
from fencepost.node import listen
from fencepost.node.kind import Clock, Image, Kind, Mark, Start
from fencepost.node.watch import Bounds

PORT = 6432
_PROGRAM = "/usr/sbin/pgbouncer"


def _command(start: Start) -> Sequence[str]:
    """Return the command of PgBouncer, whose child is PostgreSQL. It ends with PgBouncer."""
    behind = postgres.KIND.command(replace(start, listen=(listen.LOOPBACK,)))
    file = f"{start.data}/pgbouncer.ini"
    with open(file, "w") as config:
        config.write(settings(start.listen))
    shutil.chown(file, "postgres")
    server = shlex.join(["setpriv", "--pdeathsig", "KILL", *behind])
    front = shlex.join([*postgres.AS_POSTGRES, _PROGRAM, file])
    return ["sh", "-c", f"{server} & exec {front}"]


def settings(addresses: Sequence[str]) -> str:
    """Return the file of PgBouncer's settings. `options` come from clients that name settings of
    their session, which a pooled session cannot have."""
    return (
        f"[databases]\npostgres = host={postgres.SOCKETS} user=postgres\n"
        f"[pgbouncer]\nlisten_addr = {','.join(addresses)}\nlisten_port = {PORT}\n"
        "unix_socket_dir =\nauth_type = any\npool_mode = transaction\n"
        "ignore_startup_parameters = options\n"
    )


def _query(statement: str) -> str:
    return postgres.query(statement, "-h", listen.own(), "-p", str(PORT), "-U", "postgres")


def _health() -> bool:
    _query("select 1")
    return True


def _version() -> str:
    words = postgres.run([_PROGRAM, "--version"])
    return f"{words.splitlines()[0]} in front of {postgres.KIND.version()}"


def _wall(mark: Mark) -> Bounds:
    return postgres.wall(_query)


KIND = Kind(
    name="pgbouncer",
    module=__name__,
    modules=(postgres.__name__,),
    port=PORT,
    health=_health,
    versions=("1.18",),
    image=Image(packages=("pgbouncer", "postgresql-15")),
    needs=(_PROGRAM, *postgres.KIND.needs),
    command=_command,
    version=_version,
    clocks={"wall": Clock(_wall)},
    # Stop and kill PostgreSQL with PgBouncer, as if the machine failed.
    forks=True,
    files=postgres.KIND.files,
    crash_lines=postgres.KIND.crash_lines,
    loss_lines=postgres.KIND.loss_lines,
    ends_with="connection",
    model="pgbouncer",
    around_s=postgres.KIND.around_s,
)
