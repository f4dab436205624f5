"""`lease_exclusion` and `mutual_exclusion`: did two holds of one lock overlap?

The same question about two meanings of "hold". As *believed* (until the deadline) it is about the
lock service: a service that grants a lock whose lease is still running has broken its promise.
*Strictly* (until given up) it is about the clients: a client that is paused past its lease still
acts as the holder, and no service can prevent that (Kleppmann 2016).

Two holds overlap if each certainly began before the other ended. An overlap within the bounds of
two hosts' clocks proves nothing, and is only counted (`uncertain`).

A lock that hands out a grant or an extension whose lease has expired breaks its promise as well
(late_grants.py): its client never had the lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.checker.checker import Checker, of_history
from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.ends import ends_with
from fencepost.checker.facts.holds import FOREVER, Hold, holds, seconds
from fencepost.checker.facts.late_grants import late_extends, late_grants, lease_end
from fencepost.checker.facts.overlaps import (
    Kind,
    Overlap,
    believed,
    overlaps,
    overlaps_of,
    strictly,
)
from fencepost.checker.facts.untested import untested
from fencepost.checker.history.history import History, Op
from fencepost.checker.signs import GRANTED_BESIDE, GRANTED_EARLY, GRANTED_LATE, any_of
from fencepost.checker.verdict import Verdict, count, noted
from fencepost.checker.why.cause import Link, as_sentences, cause, causes, headline


def lease_exclusion(history: History, test: Mapping[str, Any]) -> Verdict:
    """Check that no two believed holds of one lock overlap in time, and that no grant was handed
    out when its lease had expired."""
    return _verdict("believed", history, test)


def mutual_exclusion(history: History, test: Mapping[str, Any]) -> Verdict:
    """Check that no two strict holds of one lock overlap in time."""
    return _verdict("strict", history, test)


def _verdict(kind: Kind, history: History, test: Mapping[str, Any]) -> Verdict:
    granted = holds(history, test)
    total = len(granted)
    details: dict[str, Any] = {
        "holds": total,
        "failed_release": test.get("failed_release", "ended"),
        "ends_with": ends_with(test),
    }
    if not total:
        return Verdict("unknown", "The lock was never granted: nothing was tested.", [], details)
    clocks = Clocks(test)
    found = overlaps_of(history, test, kind, clocks)
    if clocks:
        rows = believed(granted) if kind == "believed" else strictly(granted)
        details["uncertain"] = len(overlaps(rows)) - len(found)
    late = late_grants(history, test, granted) if kind == "believed" else []
    longer = late_extends(history, test, granted) if kind == "believed" else []
    if late:
        details["late"] = len(late)
    if longer:
        details["late_extends"] = len(longer)
    if not found and not late and not longer:
        missing = details["untested"] = _untested(kind, history, granted)
        words = f"None of {total} holds overlapped another {kind} hold."
        return Verdict(True, noted(words, missing), [], details)
    known = causes(history, test)
    whys = [known.overlap(o.first, o.second, o.start) for o in found]
    evidence = [_evidence(o, kind, why) for o, why in zip(found, whys, strict=True)]
    evidence += [_too_late(hold) for hold in late]
    evidence += [_extended_too_late(hold, op) for hold, op in longer]
    evidence.sort(key=lambda row: row["time_ns"])
    parts = []
    if found:
        parts.append(
            f"{_granted(len(found), total)} during another {kind} hold; the first at "
            f"{seconds(found[0].start)}{headline(whys[0])}."
        )
    if late:
        whose = "its" if len(late) == 1 else "their"
        parts.append(
            f"{_granted(len(late), total)} when {whose} lease had expired; the first at "
            f"{seconds(late[0].start)}."
        )
    if longer:
        parts.append(
            f"{count(len(longer), 'extend')} answered ok when the extended lease had expired; "
            f"the first at {seconds(min(op.time for _, op in longer))}."
        )
    return Verdict(False, " ".join(parts), evidence, details)


def _granted(some: int, total: int) -> str:
    return f"{some} of {total} holds {'was' if some == 1 else 'were'} granted"


def _untested(kind: str, history: History, granted: list[Hold]) -> list[str]:
    """Return the conditions that a run without overlaps did not test."""
    seen = any(hold.leases[0][1] != FOREVER for hold in granted)
    return untested(history, sees_lease=seen or kind != "believed")


def _evidence(overlap: Overlap, kind: str, why: list[Link]) -> dict[str, Any]:
    first, second = overlap.first, overlap.second
    until = first.believed_end if kind == "believed" else first.strict_end
    length = "" if overlap.end == FOREVER else f" for {(overlap.end - overlap.start) / 1e9:.3f} s"
    if kind == "believed":
        lasted = f"whose lease ran until {seconds(until)}"
    elif until == FOREVER:
        lasted = "which its holder never released"
    else:
        lasted = f"which its holder gave up at {seconds(until)} ({first.ended_by})"
    return {
        "what": (
            f"{second.who} was granted hold {second.name} at {seconds(second.start)}, while "
            f"{first.who} had hold {first.name} since {seconds(first.start)}, {lasted}: "
            f"two holders{length}.{as_sentences(why)}"
        ),
        "time_ns": overlap.start,
        "until_ns": None if overlap.end == FOREVER else overlap.end,
        **cause(why),
        "lock": second.lock,
        "holds": [first.name, second.name],
        "ops": [first.index, second.index],
    }


def _too_late(hold: Hold) -> dict[str, Any]:
    over = lease_end(hold)
    return {
        "what": (
            f"{hold.who} was granted hold {hold.name} at {seconds(hold.start)}: the grant arrived "
            f"{(hold.start - over) / 1e9:.3f} s after its lease had expired, by the lock's own "
            f"deadline ({seconds(over)})."
        ),
        "time_ns": hold.start,
        "lock": hold.lock,
        "holds": [hold.name],
        "ops": [hold.index],
    }


def _extended_too_late(hold: Hold, op: Op) -> dict[str, Any]:
    over = op.value["deadline"]
    return {
        "what": (
            f"{hold.who} was answered at {seconds(op.time)} that hold {hold.name} is extended: the "
            f"answer came {(op.time - over) / 1e9:.3f} s after that lease had expired, by the "
            f"lock's own deadline ({seconds(over)})."
        ),
        "time_ns": op.time,
        "lock": hold.lock,
        "holds": [hold.name],
        "ops": [op.index],
    }


LEASE_EXCLUSION = Checker(
    name="lease_exclusion",
    question="No lock was granted again while its lease ran, or granted when it had expired.",
    about=("service",),
    check=of_history(lease_exclusion),
    column="lease",
    goal=True,
    goal_rank=10,
    suspect=any_of(GRANTED_EARLY, GRANTED_LATE),
)

MUTUAL_EXCLUSION = Checker(
    name="mutual_exclusion",
    question="No two clients held the lock at once, counting a hold until its client gave it up.",
    about=("clients",),
    check=of_history(mutual_exclusion),
    column="mutex",
    goal=True,
    goal_rank=70,
    suspect=any_of(GRANTED_BESIDE, GRANTED_LATE),
)
