"""The clocks of other kernels, against the harness' own.

A worker stamps its ops with CLOCK_MONOTONIC of the kernel that it runs on. On another machine
than the harness' that clock began elsewhere: how far off it is follows from round trips in the
middle of which the node looked at it. The shortest one says it best, to half of what it took.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost.harness.remote.remote import Remote

BOOT_ID = "/proc/sys/kernel/random/boot_id"
MOST_ERROR_NS = 5_000_000
"""What is off by more than this is no order of events any more: some ops take no longer."""
_TRIPS = 20


@dataclass(frozen=True)
class Clock:
    """A node's CLOCK_MONOTONIC less the harness', and by how much that may be wrong (ns)."""

    offset_ns: int
    error_ns: int

    def to_json(self) -> dict[str, Any]:
        return {"offset_ns": self.offset_ns, "bound_ns": self.error_ns}


SAME = Clock(0, 0)


def measure(
    remote: Remote, now: Callable[[], int] = time.monotonic_ns, boot_id: Path = Path(BOOT_ID)
) -> Clock:
    """A node's clock; SAME where it runs on the kernel of the harness. Takes some 20 round trips.

    Raises:
        RemoteError: the node does not answer.
    """
    if boot_id.is_file() and remote.get(BOOT_ID).strip() == boot_id.read_bytes().strip():
        return SAME
    trips = []
    for _ in range(_TRIPS):
        before = now()
        shown = int(
            json.loads(remote.run(["fencepost-node", "clocks", "node", "monotonic"]).out)["ns"]
        )
        after = now()
        trips.append((after - before, shown - (before + after) // 2))
    took, offset = min(trips)
    return Clock(offset, took // 2 + 1)


def drifted(node: str, before: Clock, after: Clock) -> str | None:
    """Why the times of a node can not be held against others', None where they can."""
    moved = abs(after.offset_ns - before.offset_ns)
    error = max(before.error_ns, after.error_ns)
    if error > MOST_ERROR_NS:
        return (
            f"When things happened on {node} is known to {error / 1e6:.1f} ms only: its clock "
            f"is read over a slow way (at most {MOST_ERROR_NS / 1e6:.0f} ms are allowed)."
        )
    if moved > before.error_ns + after.error_ns:
        return (
            f"The clock of {node} moved by {moved / 1e6:.3f} ms against the harness' during the "
            f"run, and was known to {before.error_ns / 1e6:.3f} ms."
        )
    return None
