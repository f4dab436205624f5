"""Defines MariaDB: one server, whose sessions hold locks until they end or have been idle too long.

A server accepts the user fencepost without a password, from any address.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence

from fencepost.node.kind import Clock, Image, Kind, Mark, Start
from fencepost.node.listen import own
from fencepost.node.places import HOME
from fencepost.node.watch import Bounds, Watch

_SERVER = "/usr/sbin/mariadbd"
_PORT = 3306
_EMPTY = f"{HOME}/mariadb"
"""A new data folder that each server starts from; to make one takes seconds."""
_LOG = "--innodb-log-file-size=16M"
_TIMEOUT_S = 2.0


def _command(start: Start) -> Sequence[str]:
    if not os.path.exists(f"{start.data}/ibdata1"):
        subprocess.run(["cp", "-a", f"{_EMPTY}/.", start.data], check=True)
    return [
        # The machine's own configuration must not count.
        _SERVER, "--no-defaults", _LOG,
        f"--datadir={start.data}", f"--pid-file={start.data}/mariadb.pid",
        f"--bind-address={','.join(start.listen)}", f"--port={_PORT}",
        # It cannot do without a local socket. This one is no file.
        "--socket=@fencepost-mariadb",
        "--max-connections=200", "--innodb-buffer-pool-size=32M",
        # A name server that is cut off would delay each connection.
        "--skip-name-resolve", "--default-time-zone=+00:00",
        # The file system that loses unsynced data has neither direct nor asynchronous I/O.
        "--innodb-flush-method=fsync", "--innodb-use-native-aio=0",
    ]  # fmt: skip


def _health() -> bool:
    _query("select 1")
    return True


def _version() -> str:
    return f"MariaDB {_query('select version()').partition('-')[0]}"


def _wall(mark: Mark) -> Bounds:
    watch = Watch(time.CLOCK_REALTIME)
    second, _, micro = _query("select unix_timestamp(sysdate(6))").partition(".")
    return watch.bounds(int(second) * 10**9 + int(micro) * 1000, grain_ns=1000)


def _query(statement: str) -> str:
    where = ["--protocol=tcp", f"--host={own()}", f"--port={_PORT}", "--user=fencepost"]
    command = ["mariadb", "--no-defaults", *where, "-NBe", statement]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=True)
    except subprocess.SubprocessError as error:
        raise OSError(f"mariadb: {error}") from error
    return done.stdout.decode().strip()


_AFTER = f"""\
RUN useradd --system --no-create-home --shell /usr/sbin/nologin mysql \\
 && install -d -o mysql -g mysql {_EMPTY} \\
 && mariadb-install-db --no-defaults --user=mysql --datadir={_EMPTY} {_LOG} \\
      --skip-name-resolve --skip-test-db --auth-root-authentication-method=normal > /dev/null \\
 && printf '%s;\\n' 'FLUSH PRIVILEGES' 'CREATE DATABASE fencepost' 'CREATE USER fencepost' \\
      'GRANT ALL ON *.* TO fencepost' \\
    | {_SERVER} --no-defaults --user=mysql --datadir={_EMPTY} {_LOG} --bootstrap
"""

KIND = Kind(
    "mariadb",
    __name__,
    port=_PORT,
    versions=("10.11",),
    image=Image(packages=("mariadb-client-core", "mariadb-server-core"), after=_AFTER),
    needs=(_SERVER, _EMPTY, "mariadb"),
    command=_command,
    health=_health,
    version=_version,
    clocks={"wall": Clock(_wall)},
    user="mysql",
    # Checked against the messages in 10.11.18.
    crash_lines=(
        # sql/signal_handler.cc: handle_fatal_signal; ut0dbg.cc: ut_dbg_assertion_failed.
        r"\[ERROR\] \S+ got signal \d+ ;|InnoDB: Assertion failure in file ",
        # sql/mysqld.cc: network_init; mysys: my_malloc.
        r"\[ERROR\] Can't start server(?!: Bind on TCP/IP port)|\[ERROR\] .*Out of memory",
        # sql/handler.cc: ha_initialize_handlerton; storage/innobase: innodb_init.
        r"Plugin '\w+' registration as a STORAGE ENGINE failed",
        r"InnoDB: Plugin initialization aborted",
        # sql_acl.cc.
        r"Fatal error: Can't open and lock privilege tables",
    ),
    # sql/mysqld.cc: unireg_abort, network_init; its port is taken, its files are gone.
    loss_lines=(r"\[ERROR\] Aborting$", r"\[ERROR\] Can't start server: Bind on TCP/IP port"),
    ends_with="connection",
    around_s=4.5,
)
