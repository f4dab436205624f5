"""PostgreSQL as a local process. It refuses to run as root, so another user runs it."""

import glob
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager

import psycopg2

from frame.processes import free_port, running


@contextmanager
def postgres_server():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [
        os.path.dirname(shutil.which("initdb"))
    ]
    programs, port = found[-1], free_port()
    root = os.geteuid() == 0
    who = {"user": "nobody", "env": {"PATH": os.environ["PATH"]}, "cwd": "/"} if root else {}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        data = os.path.join(folder, "data")
        initdb = [f"{programs}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, **who)
        command = [f"{programs}/postgres", "-D", data, "-p", str(port), "-k", folder, "-F"]
        how = {"end": signal.SIGINT, **who}  # a fast shutdown
        with running([*command, "-h", "127.0.0.1"], port, takes_clients, **how) as server:
            yield server


def takes_clients(port):
    try:
        psycopg2.connect(host="127.0.0.1", port=port, user="postgres").close()
    except psycopg2.OperationalError:
        return False
    return True
