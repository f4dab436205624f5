"""How far the clocks of other hosts are from the harness' own.

Every client stamps its ops with CLOCK_MONOTONIC. Nodes of one kernel share that clock; of another
host's it is known by asking, as in NTP: what was read lies between the question and the answer, so
the quickest of many answers bounds the error.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from harness.remote.remote import Remote

_ROUNDS = 20
# Ops nearer to one another than this could be stamped in the wrong order.
MOST_ERROR_NS = 5_000_000


@dataclass(frozen=True)
class Offset:
    """A node's CLOCK_MONOTONIC less the harness', in ns, and by how much that may be wrong."""

    offset_ns: int = 0
    error_ns: int = 0

    def to_json(self) -> dict[str, int]:
        return {"offset_ns": self.offset_ns, "error_ns": self.error_ns}

    def agrees(self, later: Offset) -> bool:
        """Whether two looks, at the start and at the end of a run, may be of one offset."""
        apart_ns = abs(self.offset_ns - later.offset_ns)
        return apart_ns <= max(self.error_ns + later.error_ns, MOST_ERROR_NS // 2)


def measure(remote: Remote) -> Offset:
    """A node's offset; none where it has the harness' own kernel."""
    best: Offset | None = None
    for _ in range(_ROUNDS):
        before_ns = time.monotonic_ns()
        seen = json.loads(remote.run(["clocks", "node", "monotonic"]).out)
        after_ns = time.monotonic_ns()
        if seen["boot_id"] == _BOOT_ID:
            return Offset()
        found = Offset(
            seen["monotonic_ns"] - (before_ns + after_ns) // 2, (after_ns - before_ns + 1) // 2
        )
        if best is None or found.error_ns < best.error_ns:
            best = found
    assert best is not None
    return best


def _boot_id() -> str:
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.is_file() else ""


_BOOT_ID = _boot_id()


def doubts(node: str, first: Offset, last: Offset) -> list[str]:
    """Why what a node stamped can not be held against what the others did, in words."""
    found = []
    worst_ns = max(first.error_ns, last.error_ns)
    if worst_ns > MOST_ERROR_NS:
        found.append(f"The clock of {node} is known to {worst_ns / 1e6:.1f} ms only.")
    if not first.agrees(last):
        drift_ms = (last.offset_ns - first.offset_ns) / 1e6
        found.append(f"The clock of {node} drifted by {drift_ms:+.1f} ms while the test ran.")
    return found
