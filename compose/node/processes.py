"""Which processes there are on a node, and who has forked whom."""

from __future__ import annotations

import os
from contextlib import suppress


def everyone() -> list[int]:
    """The pid of every process that is seen from here: in a container, of those in it."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def family(pid: int) -> set[int]:
    """A process and all that it has forked: PostgreSQL has a process for each of its clients."""
    parents: dict[int, int] = {}
    for one in everyone():
        with suppress(OSError), open(f"/proc/{one}/stat") as file:
            parents[one] = int(file.read().rpartition(")")[2].split()[1])
    found, new = set(), {pid}
    while new:
        found |= new
        new = {child for child, parent in parents.items() if parent in new} - found
    return found
