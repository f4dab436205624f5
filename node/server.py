"""Starts, checks and wipes this node's server, as the file of its kind defines.

    run [KIND]               start it, then wait for ever: the container's main process
    start KIND [NAME=VALUE]  start it, detached; its pid and start time go to
                             /run/fencepost/server.pid
    health KIND              whether it serves: for a cluster, whether a quorum does
    leads KIND               whether it reports that it is the primary or the leader
    identity KIND            what distinguishes it from a server that replaces it
    version KIND             the version that it reports
    wipe KIND                delete its data (it must be down)

A node stays up whether or not its server does, as a machine would. Settings: VERSION, DISK
(disk.py) and those of `Start`.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import socket
import subprocess
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import NoReturn

from fencepost.node import disk, kinds, listen, processes
from fencepost.node.kind import Kind, Start
from fencepost.node.places import DATA, LOGS, NAME, PID_FILE, PROGRAM_PATH, RUN, STARTING
from fencepost.node.vdso import FILE as SKEW


def run(words: list[str]) -> NoReturn:
    if words:
        _start_apart(words)
    os.execvp("sleep", ["sleep", "infinity"])


def _start_apart(words: list[str]) -> None:
    """Start it from a process that exits, so that the server becomes an orphan and is reaped."""
    child = os.fork()
    if child == 0:
        try:
            start(words)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{' '.join(words)} could not be started")


def start(words: list[str]) -> None:
    """Start it unless it runs. A lock keeps two concurrent calls from starting two."""
    name, *given = words
    for folder in (Path(RUN), Path(LOGS)):
        folder.mkdir(parents=True, exist_ok=True)
    with Path(STARTING).open("a") as asked:
        fcntl.flock(asked, fcntl.LOCK_EX)
        if not _runs():
            _start(kinds.find(name), dict(word.split("=", 1) for word in given))


def _runs() -> bool:
    """Return whether the process of the pid file lives."""
    try:
        pid, began = Path(PID_FILE).read_text().split()
    except (OSError, ValueError):
        return False
    return processes.lives(int(pid)) and processes.started(int(pid)) == began


def _start(kind: Kind, settings: dict[str, str]) -> None:
    data, log = Path(DATA) / kind.role, Path(LOGS) / f"{kind.role}.log"
    disk.lay(data, settings.pop("DISK", "plain"), kind.disk_mb, log)
    version = settings.pop("VERSION", kind.versions[0])
    given_to = Start(_node(), str(data), version, settings, listen.everywhere())
    command = [*_as(kind.user), *kind.command(given_to)]
    _give(kind.user, data)
    if os.path.exists(SKEW):
        # Under the skew that a clock fault left, if any.
        command = [PROGRAM_PATH, "launch", *command]
    with log.open("ab") as output:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    Path(PID_FILE).write_text(f"{server.pid} {processes.started(server.pid)}\n")


def _as(user: str) -> list[str]:
    """Return the prefix that runs a command as this user; empty if the node has no such user."""
    if not _known(user):
        return []
    return ["setpriv", "--reuid", user, "--regid", user, "--init-groups", "--"]


def _give(user: str, data: Path) -> None:
    """Make the user the owner of the data."""
    if not _known(user):
        return
    found = pwd.getpwnam(user)
    own = partial(os.chown, uid=found.pw_uid, gid=found.pw_gid, follow_symlinks=False)
    own(data)
    # By open folders: its user may replace a folder by a link to another one meanwhile.
    for _, folders, files, fd in os.fwalk(data):
        for name in (*folders, *files):
            own(name, dir_fd=fd)


def _known(user: str) -> bool:
    return user in (entry.pw_name for entry in pwd.getpwall())


def health(words: list[str]) -> bool:
    return _kind(words).health()


def leads(words: list[str]) -> bool:
    kind = _kind(words)
    return kind.leads is not None and kind.leads()


def identity(words: list[str]) -> str:
    kind = _kind(words)
    return kind.identity() if kind.identity else ""


def version(words: list[str]) -> str:
    return _kind(words).version()


def wipe(words: list[str]) -> None:
    disk.take_away(Path(DATA) / _kind(words).role)


def _kind(words: list[str]) -> Kind:
    (name,) = words
    return kinds.find(name)


def _node() -> str:
    name = Path(NAME)
    return name.read_text().strip() if name.exists() else socket.gethostname()
