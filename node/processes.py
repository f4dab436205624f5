"""Finds the processes of a node: by pid and start, by parent, by mark.

    process show PID               when it was started, and its mark
    process children PID STARTED   its children, unless another process has its number now
    process marked MARK            every process that was started with this mark
    process listener PORT          the one that listens on a TCP port, and the rest of its tree

A number does not identify a process for long: a pid file outlives its process, and the kernel
reuses the number. Number and start time identify it for good. A process of fencepost without a pid
file carries a mark in its environment, which its children inherit. Answers are JSON.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from fencepost.node.places import MARK

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True)
class Process:
    """One process for good. `started`: clock ticks since the boot, and the boot's id."""

    pid: int
    started: str


def everyone() -> list[int]:
    """Return the pid of every visible process; in a container, of its own."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def status(pid: int | str) -> list[str]:
    """Return the fields after the name in /proc/PID/stat (proc(5)): the state, the parent, ...; for
    PID/task/TID, those of a thread. OSError if it does not exist."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def family(pid: int) -> set[int]:
    """Return a process and its descendants: PostgreSQL forks a process for each client."""
    parents = dict(_parents())
    found, new = set(), {pid}
    while new:
        found |= new
        new = {child for child, parent in parents.items() if parent in new} - found
    return found


def started(pid: int) -> str | None:
    """Return the start of a process, as in `Process`; None if it does not exist."""
    try:
        with open(_BOOT_ID) as boot:
            # Field 22; two fields precede the end of the name.
            return f"{status(pid)[19]}@{boot.read().strip()[:8]}"
    except (FileNotFoundError, ProcessLookupError):
        return None


def lives(pid: int) -> bool:
    """Return whether the process runs, and is not a zombie."""
    try:
        return status(pid)[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def marked(mark: str) -> list[Process]:
    """Return every process with this mark, except this one."""
    found = []
    for pid in everyone():
        since = started(pid)
        if since is not None and pid != os.getpid() and _mark(pid) == mark:
            found.append(Process(pid, since))
    return found


def children(pid: int, since: str) -> list[Process]:
    """Return the children of a process; nothing if it is gone."""
    listed = [child for child, parent in _parents() if parent == pid]
    found = [Process(child, born) for child in listed if (born := started(child))]
    # Checked last, so that they were its children all the time.
    return found if started(pid) == since else []


def send(pid: int, number: int, since: str | None = None) -> bool:
    """Send a signal; return False if the process does not exist, or another has its number now.

    Without `since`, any process with this number gets it.
    """
    if pid < 1:
        raise OSError(f"{pid} is not a process number")
    try:
        with _handle(pid) as handle:
            # The handle refers to the process that had the number when it was opened.
            if since is not None and started(pid) != since:
                return False
            if handle is None:
                os.kill(pid, number)
            else:
                signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    return True


def command(words: list[str]) -> object:
    """Run one of the verbs. OSError if it is unknown."""
    match words:
        case ["show", pid]:
            return show(int(pid))
        case ["children", pid, since]:
            return [asdict(child) for child in children(int(pid), since)]
        case ["marked", mark]:
            return [asdict(process) for process in marked(mark)]
        case ["listener", port]:
            return listener(int(port))
    raise OSError(f"unknown verb process {' '.join(words)}; use show, children, marked or listener")


def show(pid: int) -> dict[str, Any]:
    return {"started": started(pid), "mark": _mark(pid)}


def listener(port: int, root: int = 1) -> dict[str, Any]:
    """Return which process of a tree listens on a TCP port, and every other process of the tree.

    `pid` is None if none does. If several do (a forking server passes its socket on), it is their
    common ancestor.
    """
    tree = sorted(family(root))
    sockets = _listening(port)
    found = [pid for pid in tree if sockets & _sockets(pid)]
    return {"pid": min(found, key=_age, default=None), "tree": tree}


def _age(pid: int) -> int:
    since = started(pid)
    return int(since.partition("@")[0]) if since else sys.maxsize


def _listening(port: int) -> set[str]:
    """Return the sockets that listen on a port, by their number, in this network."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(FileNotFoundError), open(table) as rows:
            for row in rows.readlines()[1:]:
                # Local address, remote address, state (0A is LISTEN) ... inode (proc(5)).
                words = row.split()
                if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                    found.add(words[9])
    return found


def _sockets(pid: int) -> set[str]:
    """Return the open sockets of a process, by their number."""
    found = set()
    with suppress(OSError):  # it has just ended
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                link = os.readlink(f"/proc/{pid}/fd/{name}")
                if link.startswith("socket:["):
                    found.add(link.removeprefix("socket:[").rstrip("]"))
    return found


@contextmanager
def _handle(pid: int) -> Iterator[int | None]:
    """Return a handle of a process; None if unsupported: before Linux 5.3, or under a filter."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except (OSError, AttributeError):
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def _parents() -> Iterator[tuple[int, int]]:
    """Return every process with its parent."""
    for pid in everyone():
        with suppress(OSError):
            yield pid, int(status(pid)[1])


def _mark(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return ""  # it is gone, or belongs to another user
    named = (variable.partition(b"=") for variable in variables)
    return next(
        (value.decode(errors="replace") for name, _, value in named if name == MARK.encode()), ""
    )
