"""tooz, PostgreSQL driver: `acquired` stays True when another client has the lock.

Run with tooz 9.1.0, psycopg2 2.9.13, PostgreSQL 15, Python 3.11.
Needs: pip install tooz==9.1.0 psycopg2-binary; Debian's postgresql.
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
from tooz import coordination


def show(port):
    url = f"postgresql://postgres@127.0.0.1:{port}?dbname=postgres"
    first = coordination.get_coordinator(url, b"first")
    second = coordination.get_coordinator(url, b"second")
    first.start()
    second.start()
    mine, other = first.get_lock(b"job"), second.get_lock(b"job")
    if not mine.acquire(blocking=False):
        raise RuntimeError("the lock was not free at the start")
    admin = psycopg2.connect(host="127.0.0.1", port=port, user="postgres")
    admin.autocommit = True
    with admin.cursor() as cursor:  # the server ends the connection, as a restart does
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
    deadline = time.monotonic() + 20
    while not other.acquire(blocking=False):
        if time.monotonic() > deadline:
            raise RuntimeError("the lock was not freed")
        time.sleep(0.05)
    first.heartbeat()
    both = mine.acquired and other.acquired
    assert not both, "the second client holds the lock, and `acquired` of the first is still True"


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
