"""PostgreSQL's advisory locks through PgBouncer's transaction pooling: two holders.

Run with PgBouncer 1.18, PostgreSQL 15, psycopg2 2.9.13, Python 3.11.
Needs: pip install psycopg2-binary; Debian's postgresql and pgbouncer.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import psycopg2


def start_bouncer(folder, port):
    through, file = free_port(), os.path.join(folder, "pgbouncer.ini")
    with open(file, "w") as config:
        config.write(
            f"[databases]\npostgres = host=127.0.0.1 port={port} user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {through}\nunix_socket_dir =\n"
            "auth_type = any\npool_mode = transaction\ndefault_pool_size = 1\n"
        )
    os.chmod(file, 0o644)
    who = {"user": "nobody"} if os.geteuid() == 0 else {}
    bouncer = subprocess.Popen(["pgbouncer", "-q", file], stderr=subprocess.DEVNULL, cwd="/", **who)
    answers(through, bouncer)
    return bouncer, through


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


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def answers(port, server):
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if server.poll() is not None:
                break
            time.sleep(0.05)
    raise RuntimeError("the server did not start")


def start(folder):
    """Start PostgreSQL as a user that is not root, which it refuses."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [
        os.path.dirname(shutil.which("initdb"))
    ]
    programs, data, port = found[-1], os.path.join(folder, "data"), free_port()
    os.chmod(folder, 0o777)
    other = {"user": "nobody", "env": {"PATH": os.environ["PATH"]}, "cwd": "/"}
    who = other if os.geteuid() == 0 else {}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(
        [f"{programs}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N"],
        check=True,
        **who,
        **quiet,
    )
    command = [f"{programs}/postgres", "-D", data, "-p", str(port), "-k", folder, "-F"]
    server = subprocess.Popen([*command, "-h", "127.0.0.1"], **who, **quiet)
    answers(port, server)
    for _ in range(1200):
        try:
            psycopg2.connect(host="127.0.0.1", port=port, user="postgres").close()
            return server, port
        except psycopg2.OperationalError:
            time.sleep(0.05)
    server.kill()
    raise RuntimeError("PostgreSQL did not start")


def main():
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(folder)
        try:
            bouncer, through = start_bouncer(folder, port)
            try:
                show(port, through)
            finally:
                bouncer.kill()
                bouncer.wait()
        finally:
            server.send_signal(signal.SIGINT)  # a fast shutdown
            server.wait()


if __name__ == "__main__":
    main()
