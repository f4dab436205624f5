"""Processes of a node, told from others by more than their number (node/processes.py)."""

from __future__ import annotations

import json
from typing import Any

from fencepost.harness.remote.remote import Remote
from fencepost.node.places import PROGRAM
from fencepost.node.processes import Process

CLIENT, RESOURCE = "client", "resource"
"""What programs of a run are marked with: a client and its pump; the resource's server."""


def marked(remote: Remote, mark: str) -> list[Process]:
    """Every process on the node that a run has started with this mark."""
    return [Process(**row) for row in _ask(remote, "marked", mark) or []]


def children(remote: Remote, process: Process) -> list[Process]:
    """What a process has forked itself; nothing if it is gone."""
    return [Process(**row) for row in _ask(remote, "children", str(process.pid), process.started)]


def own(remote: Remote, pid: int, mark: str) -> Process | None:
    """The process of this number; None if it is gone, or does not have the mark."""
    shown = _ask(remote, "show", str(pid))
    if shown["started"] is None or shown["mark"] != mark:
        return None
    return Process(pid, shown["started"])


def _ask(remote: Remote, *words: str) -> Any:
    return json.loads(remote.run([PROGRAM, "process", *words]).out or "null")
