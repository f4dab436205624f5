"""PostgreSQL's advisory locks through PgBouncer's transaction pooling: two holders.

Run with PgBouncer 1.18, PostgreSQL 15, psycopg2 2.9.13, Python 3.11.
Needs: pip install psycopg2-binary; Debian's postgresql and pgbouncer.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import tempfile
from contextlib import contextmanager

import psycopg2

from frame.postgres_server import postgres_server
from frame.processes import free_port, running


@contextmanager
def pgbouncer(port):
    through = free_port()
    who = {"user": "nobody"} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        file = os.path.join(folder, "pgbouncer.ini")
        with open(file, "w") as config:
            config.write(
                f"[databases]\npostgres = host=127.0.0.1 port={port} user=postgres\n"
                f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {through}\n"
                "unix_socket_dir =\nauth_type = any\npool_mode = transaction\n"
                "default_pool_size = 1\n"
            )
        os.chmod(file, 0o644)
        with running(["pgbouncer", "-q", file], through, cwd="/", **who) as bouncer:
            yield bouncer


def asks(connection, statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


def show(port, through):
    one, two = (
        psycopg2.connect(host="127.0.0.1", port=through, user="postgres", dbname="postgres")
        for _ in range(2)
    )
    one.autocommit = two.autocommit = True
    first = asks(one, "SELECT pg_try_advisory_lock(42)")
    second = asks(two, "SELECT pg_try_advisory_lock(42)")
    one.close()
    two.close()
    direct = psycopg2.connect(host="127.0.0.1", port=port, user="postgres")
    left = asks(direct, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
    assert not (first and second), (
        f"two clients were granted lock 42; both are gone, and {left} is still held in the pool"
    )


if __name__ == "__main__":
    with postgres_server() as server, pgbouncer(server.port) as bouncer:
        show(server.port, bouncer.port)
