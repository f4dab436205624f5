"""Finds processes on a node and identifies them by pid and start time (node/processes.py)."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

from fencepost.harness.remote.remote import Remote, RemoteError
from fencepost.node.places import PROGRAM
from fencepost.node.processes import Process

CLIENT, RESOURCE = "client", "resource"
"""Marks of a run's programs: a client and its pump; the server of the resource."""
_LOOKS, _LOOK_S = 10, 0.05


def marked(remote: Remote, mark: str) -> list[Process]:
    """Return every process on the node that a run has started with this mark."""
    return [Process(**row) for row in _ask(remote, "marked", mark) or []]


def kill_marked(remote: Remote, mark: str) -> None:
    """Kill every process on the node that a run has started with this mark."""
    for process in marked(remote, mark):
        remote.signal(process.pid, signal.SIGKILL, process.started)


def children(remote: Remote, process: Process) -> list[Process]:
    """Return the children of a process; none if it has ended."""
    return [Process(**row) for row in _ask(remote, "children", str(process.pid), process.started)]


def own(remote: Remote, pid: int, mark: str) -> Process | None:
    """Return the process with this pid; None if it has ended or lacks the mark."""
    shown = _ask(remote, "show", str(pid))
    if shown["started"] is None or shown["mark"] != mark:
        return None
    return Process(pid, shown["started"])


def always_runs(remote: Remote, pid: int, started: str | None) -> bool:
    """Return whether the process computes or wants to at each of several looks; False if its node
    does not answer."""
    try:
        for _ in range(_LOOKS):
            if remote.state(pid, started) != "R":
                return False
            time.sleep(_LOOK_S)
    except RemoteError:
        return False
    return True


def _ask(remote: Remote, *words: str) -> Any:
    return json.loads(remote.run([PROGRAM, "process", *words]).out or "null")
