"""django-pglocks: close_old_connections() in a block frees its lock, and Django reconnects.

Run with django-pglocks 1.0.4, Django 5.2.19, psycopg2 2.9.13, PostgreSQL 15, Python 3.11.
Needs: pip install django-pglocks==1.0.4 django psycopg2-binary; Debian's postgresql.
CONTROL=1 keeps the connection.
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
from contextlib import suppress

import django
import psycopg2
from django.conf import settings
from django.db import InterfaceError, close_old_connections, connections
from django_pglocks import advisory_lock


def show(port):
    one = {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres",
           "HOST": "127.0.0.1", "PORT": port}  # fmt: skip
    settings.configure(DATABASES={"default": one, "second": one})
    django.setup()
    with suppress(InterfaceError), advisory_lock("job"):  # its unlock fails on the old connection
        if not os.environ.get("CONTROL"):
            close_old_connections()  # as Channels does at each database_sync_to_async
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT 1")
            works = cursor.fetchone() == (1,)
        both = second_holds(deadline=time.monotonic() + 5)
    for name in connections:
        connections[name].close()
    assert not (works and both), (
        "the second client holds the lock, while the first is in its block and its queries work"
    )


def second_holds(deadline):
    """Return whether another client is granted the lock; the server may take a moment."""
    while time.monotonic() < deadline:
        with advisory_lock("job", wait=False, using="second") as granted:
            if granted:
                return True
        time.sleep(0.05)
    return False


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
            show(port)
        finally:
            server.send_signal(signal.SIGINT)  # a fast shutdown
            server.wait()


if __name__ == "__main__":
    main()
