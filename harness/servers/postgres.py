"""Defines PostgreSQL: one server, whose sessions hold locks without a lease."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence

from fencepost.node.kind import Clock, Image, Kind, Mark, Start
from fencepost.node.places import HOME, RUN
from fencepost.node.watch import Bounds, Watch

_SERVER = "/usr/lib/postgresql/15/bin/postgres"
_EMPTY = f"{HOME}/postgres"
"""An empty database cluster that each server starts from; initdb would take too long in a test."""
AS_POSTGRES = ("setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups")
SOCKETS = f"{RUN}/postgres"
_TIMEOUT_S = 2.0

# A message may quote a client: its statement, or a value. The severity comes before the text, and
# lines of one message after the first begin with a tab (elog.c: append_with_tabs).
_FIRST = r"(?:[^:]*:(?!  ))*[^:]*\b"
_SEVERITY = rf"^(?!\t){_FIRST}"
_QUOTES = r"(?:STATEMENT|DETAIL|CONTEXT|QUERY):  |LOG:  (?:statement|execute|duration)\b"
_UNQUOTED = rf"^(?!\t)(?!{_FIRST}(?:{_QUOTES})).*"


def _command(start: Start) -> Sequence[str]:
    if not os.path.exists(f"{start.data}/PG_VERSION"):
        subprocess.run(["cp", "-a", f"{_EMPTY}/.", start.data], check=True)
    os.makedirs(SOCKETS, exist_ok=True)
    for folder in (start.data, SOCKETS):
        shutil.chown(folder, "postgres")
        os.chmod(folder, 0o700)
    where = ["-D", start.data, "-k", SOCKETS, "-h", ",".join(start.listen)]
    return [*AS_POSTGRES, _SERVER, *where, "-c", "max_connections=200"]


def _health() -> bool:
    query("select 1")
    return True


def _version() -> str:
    return f"PostgreSQL {query('show server_version')}"


def _wall(mark: Mark) -> Bounds:
    return wall(query)


def wall(ask: Callable[[str], str]) -> Bounds:
    """Return bounds of the server's wall clock, which `ask` queries."""
    watch = Watch(time.CLOCK_REALTIME)
    second, _, micro = ask("select extract(epoch from clock_timestamp())").partition(".")
    return watch.bounds(int(second) * 10**9 + int(micro) * 1000, grain_ns=1000)


def query(statement: str, *where: str) -> str:
    """Return psql's output. `where`: its options for another server than this node's. Raises
    OSError."""
    return run([*AS_POSTGRES, "psql", *(where or ("-h", SOCKETS)), "-qAtc", statement])


def run(command: Sequence[str]) -> str:
    """Return a command's output. Raises OSError if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=True)
    except subprocess.SubprocessError as error:
        raise OSError(f"{command[0]}: {error}") from error
    return done.stdout.decode().strip()


_BEFORE = """\
RUN mkdir -p /etc/postgresql-common \\
 && echo create_main_cluster=false > /etc/postgresql-common/createcluster.conf
"""
_AFTER = f"""\
RUN install -d -o postgres {_EMPTY} \\
 && setpriv --reuid postgres --regid postgres --init-groups \\
      /usr/lib/postgresql/15/bin/initdb -A trust -E UTF8 --no-locale -D {_EMPTY} \\
 && echo 'host all all all trust' >> {_EMPTY}/pg_hba.conf
"""

KIND = Kind(
    "postgres",
    __name__,
    port=5432,
    versions=("15",),
    image=Image(packages=("postgresql-15",), before=_BEFORE, after=_AFTER),
    needs=(_SERVER, _EMPTY, "psql"),
    command=_command,
    health=_health,
    version=_version,
    clocks={"wall": Clock(_wall)},
    forks=True,
    files=(SOCKETS,),
    # Checked against the messages in 15.20.
    crash_lines=(
        # elog.c; mcxt.c; sysv_shmem.c: CreateAnonymousSegment, at the start.
        rf"{_SEVERITY}(?:PANIC:  |(?:ERROR|FATAL):  out of memory|FATAL:  could not map anonymous)",
        # postmaster.c: LogChildExit; 15 is an order to end, and so is 3.
        rf"{_UNQUOTED}(?:terminated by signal (?:4|6|7|8|11)\b"
        # postmaster.c: PostmasterStateMachine, process_pm_child_exit, BackendStartup.
        r"|(?:aborting startup|shutting down) due to startup process failure"
        r"|abnormal database system shutdown|could not fork .*: Cannot allocate memory)",
    ),
    loss_lines=(
        # postmaster.c: a process was killed; the files are gone.
        rf"{_UNQUOTED}(?:terminated by signal 9\b|because data directory lock file is invalid)",
        # miscinit.c: CreateLockFile. It was killed while it wrote the file.
        rf"{_SEVERITY}FATAL:  lock file .* is empty",
    ),
    ends_with="connection",
    model="postgres",
    around_s=4.5,
)
