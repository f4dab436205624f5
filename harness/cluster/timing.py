"""How far the clocks of other machines are from the harness' own.

A worker stamps its ops with CLOCK_MONOTONIC of its own kernel. On another machine that clock
started at another time. The offset is measured by round trips, as NTP does: the node reads its
clock in the middle of each. The shortest trip is the most exact one, to half of its length.
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
"""With a larger error the order of events is lost: some ops take no longer than this."""
_TRIPS = 20


@dataclass(frozen=True)
class Clock:
    """A node's CLOCK_MONOTONIC minus the harness', and the bound of the error, in ns."""

    offset_ns: int
    error_ns: int

    def to_json(self) -> dict[str, Any]:
        return {"offset_ns": self.offset_ns, "bound_ns": self.error_ns}


SAME = Clock(0, 0)


def measure(
    remote: Remote, now: Callable[[], int] = time.monotonic_ns, boot_id: Path = Path(BOOT_ID)
) -> Clock:
    """Measure a node's clock in 20 round trips. SAME if the node runs on the harness' kernel.

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
    """Why the times of a node cannot be compared with others'; None if they can be."""
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
