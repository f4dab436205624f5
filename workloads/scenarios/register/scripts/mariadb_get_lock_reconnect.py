"""MariaDB's GET_LOCK with PyMySQL: ping() reconnects in silence, and the lock is lost.

Run with PyMySQL 1.2.4, MariaDB 10.11, Python 3.11.
Needs: pip install PyMySQL; Debian's mariadb-server.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time

import pymysql


def asks(connection, statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


def killed(one, two):
    """The server ends the session, as a failover does."""
    with two.cursor() as cursor:
        cursor.execute(f"KILL CONNECTION {one.thread_id()}")


def idle(one, two):
    """The session is idle for longer than its wait_timeout: its client works on something else."""
    with one.cursor() as cursor:
        cursor.execute("SET SESSION wait_timeout = 1")


def told(port, end):
    """Return whether a client whose lock is lost hears of it."""
    one, two = (pymysql.connect(host="127.0.0.1", port=port, user="root") for _ in range(2))
    if asks(one, "SELECT GET_LOCK('job', 0)") != 1:
        raise RuntimeError("the lock was not free at the start")
    end(one, two)
    deadline = time.monotonic() + 60
    while asks(two, "SELECT GET_LOCK('job', 0)") != 1:
        if time.monotonic() > deadline:
            raise RuntimeError("the lock was not freed")
        time.sleep(0.05)
    try:
        one.ping(reconnect=True)
    except pymysql.Error:
        return True
    finally:
        two.close()
    return False


def show(port):
    silent = [end.__name__ for end in (killed, idle) if not told(port, end)]
    assert not silent, (
        f"ping() returned as if nothing had happened ({', '.join(silent)}): the lock is lost, and "
        "another has it"
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
    """Start MariaDB as a user that is not root, which it refuses."""
    port, data, socket_file = free_port(), f"{folder}/data", f"{folder}/socket"
    who = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    os.mkdir(data)
    if os.geteuid() == 0:
        os.chmod(folder, 0o777)
        shutil.chown(data, who)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(
        [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={data}",
            f"--user={who}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ],
        check=True,
        **quiet,
    )
    server = subprocess.Popen(
        [
            "/usr/sbin/mariadbd",
            "--no-defaults",
            f"--datadir={data}",
            f"--user={who}",
            f"--port={port}",
            "--bind-address=127.0.0.1",
            f"--socket={socket_file}",
            "--skip-name-resolve",
            f"--pid-file={folder}/data/pid",
        ],
        **quiet,
    )
    answers(port, server)
    return server, port


def main():
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(folder)
        try:
            show(port)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
