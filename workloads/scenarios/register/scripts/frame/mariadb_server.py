"""MariaDB as a local process. It refuses to run as root, so another user runs it."""

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager

from frame.processes import free_port, running


@contextmanager
def mariadb_server(*options):
    port, root = free_port(), os.geteuid() == 0
    who = "nobody" if root else pwd.getpwuid(os.geteuid()).pw_name
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data")
        os.mkdir(data)
        if root:
            os.chmod(folder, 0o777)
            shutil.chown(data, who)
        made = ["--no-defaults", f"--datadir={data}", f"--user={who}"]
        subprocess.run(
            ["mariadb-install-db", *made, "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        command = [
            "/usr/sbin/mariadbd", *made, f"--port={port}", "--bind-address=127.0.0.1",
            f"--socket={folder}/socket", f"--pid-file={data}/pid", "--skip-name-resolve",
            "--innodb-buffer-pool-size=32M", *options,
        ]  # fmt: skip
        with running(command, port) as server:
            yield server
