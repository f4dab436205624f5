"""`lease_exclusion` and `mutual_exclusion`: were two holds of one lock on at the same time?

The same question about two meanings of "hold". As *believed* (until the deadline) it is about
the lock service: a service that grants a lock whose lease is still running has broken its
promise. *Strictly* (until given up) it is about the clients: one that is paused past its
lease goes on as a holder, and no service can prevent that (Kleppmann 2016).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checker.faults import during, faults
from checker.history import History
from checker.holds import FOREVER, Overlap, holds, overlaps, seconds
from checker.verdict import Verdict


def lease_exclusion(history: History, test: Mapping[str, Any]) -> Verdict:
    """No two believed holds of one lock overlap in time."""
    found = holds(history, test)
    rows = [(start, end, hold) for hold in found for start, end in hold.believed]
    return _verdict("believed", overlaps(rows), len(found), history, test)


def mutual_exclusion(history: History, test: Mapping[str, Any]) -> Verdict:
    """No two strict holds of one lock overlap in time."""
    found = holds(history, test)
    # A hold that was lost before its grant arrived was never on.
    rows = [(h.start, h.strict_end, h) for h in found if h.start <= h.strict_end]
    return _verdict("strict", overlaps(rows), len(found), history, test)


def _verdict(
    kind: str, found: list[Overlap], count: int, history: History, test: Mapping[str, Any]
) -> Verdict:
    details = {"holds": count, "failed_release": test.get("failed_release", "ended")}
    if not count:
        return Verdict("unknown", "The lock was never granted: nothing was tested.", [], details)
    if not found:
        return Verdict(
            True, f"None of {count} holds overlapped another's {kind} hold.", [], details
        )
    on = faults(history)
    evidence = [_evidence(o, kind, during(on, o.start, o.end)) for o in found]
    summary = (
        f"{len(found)} of {count} holds were granted while another's {kind} hold was on; "
        f"the first at {seconds(found[0].start)}."
    )
    return Verdict(False, summary, evidence, details)


def _evidence(overlap: Overlap, kind: str, on: str) -> dict[str, Any]:
    first, second = overlap.first, overlap.second
    until = first.believed_end if kind == "believed" else first.strict_end
    length = "" if overlap.end == FOREVER else f" for {(overlap.end - overlap.start) / 1e9:.3f} s"
    if kind == "believed":
        lasted = f"whose lease ran until {seconds(until)}"
    elif until == FOREVER:
        lasted = "which its holder never gave up"
    else:
        lasted = f"which its holder gave up at {seconds(until)} ({first.ended_by})"
    return {
        "what": (
            f"{second.who} was granted hold {second.name} at {seconds(second.start)}, while "
            f"{first.who} had hold {first.name} since {seconds(first.start)}, {lasted}: "
            f"two holders{length}.{on}"
        ),
        "time_ns": overlap.start,
        "until_ns": None if overlap.end == FOREVER else overlap.end,
        "lock": second.lock,
        "holds": [first.name, second.name],
        "ops": [first.index, second.index],
    }
