"""Writes run.json: facts about a run that its request lacks. No other module writes it.

It grows at known points, each time as a whole file, so that a run that was killed can be judged:

    the run begins      started, versions (of fencepost and the cluster)
    nodes are asked     lacks (the nodes that cannot have a fault, by FAMILY/VARIANT)
    servers are up      versions (of the servers too), clocks, crash_lines and loss_lines (of a kind
                        of servers in a user's file)
    clients are ready   began_unix_s, ready_s, promises (that their program named, in lock too)
    the run ends        plays and schedule (of triggered faults), time_s (of a segment cut short)
    it is judged        facts from the history: lock.token, checkers, not_checked
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fencepost import runfiles
from fencepost.harness.results import results


def learn(run: Path, **facts: Any) -> None:
    """Add facts to the run.json of the run in this folder; a known fact is replaced, of `lock`
    each field by itself.

    Raises:
        OSError: it cannot be written.
        ValueError: the present run.json cannot be used.
    """
    path = run / runfiles.FACTS
    known = runfiles.test(path) if path.is_file() else {}
    results.write(path, runfiles.merged(known, facts))


def now() -> str:
    """Return the time in UTC, as `started` has it."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
