"""Measures the offset between the clocks of other machines and the harness' clock.

A worker stamps its ops with CLOCK_MONOTONIC of its kernel, which starts at a different time on each
machine. The offset is measured by round trips, as in NTP: the node reads its clock in the middle of
each. The shortest trip gives the smallest error, half of its length.
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
"""With a larger error the order of events would be unknown: some ops take no longer than this."""
_TRIPS = 20


@dataclass(frozen=True)
class Clock:
    """A node's CLOCK_MONOTONIC minus the harness', and the maximum error, both in ns."""

    offset_ns: int
    error_ns: int

    def to_json(self) -> dict[str, Any]:
        return {"offset_ns": self.offset_ns, "bound_ns": self.error_ns}


SAME = Clock(0, 0)


def measure(
    remote: Remote, now: Callable[[], int] = time.monotonic_ns, boot_id: Path = Path(BOOT_ID)
) -> Clock:
    """Measure a node's clock in 20 round trips; return SAME if it runs on the harness' kernel.

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
    """Return why a node's times are not comparable with others'; None if they are."""
    moved = abs(after.offset_ns - before.offset_ns)
    error = max(before.error_ns, after.error_ns)
    if error > MOST_ERROR_NS:
        return (
            f"The times of {node} are uncertain by {error / 1e6:.1f} ms, because the connection to "
            f"it is slow (at most {MOST_ERROR_NS / 1e6:.0f} ms are allowed)."
        )
    if moved > before.error_ns + after.error_ns:
        return (
            f"The clock of {node} drifted by {moved / 1e6:.3f} ms from the harness' clock during "
            f"the run; the measurement's error is {before.error_ns / 1e6:.3f} ms."
        )
    return None
