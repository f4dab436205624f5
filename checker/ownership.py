"""`ownership`: did a process end the hold of another?

From the outside this can be seen only by what it did. A release counts as theft where both
are there: it was answered ok although its own hold was over and another's had been granted,
and that other hold then turned out to be gone while its lease still ran: somebody else was
granted the lock, or its holder's own extend or release was refused. A release that names
another process' hold and is answered ok needs no further proof.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checker.faults import Fault, during, faults
from checker.history import Call, History
from checker.holds import Hold, holds, seconds
from checker.verdict import Verdict

NOT_HELD = "not-held"
"""The error kind of an extend or release that was refused because the hold was gone."""


def ownership(history: History, test: Mapping[str, Any]) -> Verdict:
    """No process ends the hold of another."""
    found = holds(history, test)
    by_name = {hold.name: hold for hold in found}
    calls = [c for c in history.calls() if c.begin.f in ("release", "extend")]
    releases = [c for c in calls if c.begin.f == "release" and c.type == "ok"]
    details = {"releases": len(releases)}
    if not releases:
        return Verdict("unknown", "No release was answered ok: nothing was tested.", [], details)
    on = faults(history)
    evidence = []
    late: list[tuple[Call, Hold]] = []
    for release in releases:
        hold = by_name.get(str(release.begin.value.get("hold")))
        if hold is None:
            continue
        if hold.process != release.begin.process:
            evidence.append(_foreign(release, hold, on))
        else:
            late.append((release, hold))
    evidence += _thefts(late, found, calls, on)
    if evidence:
        summary = f"{len(evidence)} of {len(releases)} releases ended the hold of another process."
        return Verdict(False, summary, evidence, details)
    return Verdict(True, f"None of {len(releases)} releases ended another's hold.", [], details)


def _thefts(
    releases: list[tuple[Call, Hold]], found: list[Hold], calls: list[Call], on: list[Fault]
) -> list[dict[str, Any]]:
    evidence = []
    refused: dict[str, list[Call]] = {}
    for call in calls:
        if call.type == "fail" and call.end and call.end.error and call.end.error[0] == NOT_HELD:
            refused.setdefault(str(call.begin.value.get("hold")), []).append(call)
    for lock in dict.fromkeys(hold.lock for hold in found):
        mine = [hold for hold in found if hold.lock == lock]
        for place, victim in enumerate(mine):
            gone = _gone(victim, mine[place + 1 : place + 2], refused.get(victim.name, []))
            if gone is None:
                continue
            for release, hold in releases:
                if hold.lock == lock and _could_end(release, hold, victim, gone[0]):
                    evidence.append(_theft(release, hold, victim, gone[1], on))
                    break
    return evidence


def _gone(victim: Hold, following: list[Hold], refused: list[Call]) -> tuple[int, str] | None:
    """When, and by what, a believed hold proved to be gone before its time; None if not."""
    proofs = [
        (hold.start, f"{hold.who} was granted hold {hold.name}")
        for hold in following
        if any(start <= hold.start < end for start, end in victim.believed)
    ]
    proofs += [
        (call.end.time, f"its own {call.begin.f} was refused")
        for call in refused
        if call.end and call.end.time < victim.deadline and call.begin.time <= victim.strict_end
    ]
    return min(proofs, default=None)


def _could_end(release: Call, hold: Hold, victim: Hold, gone: int) -> bool:
    """Whether this release, with its own lease over, ran between the victim's grant and its loss.

    A release of a lease that was still running ended what was its own: if another was granted
    the lock as well, that is the service's double grant. A release that was sent before the
    victim was granted may have been answered late and be quite right, unless its own lease had
    run out before the victim even asked.
    """
    assert release.end is not None
    if hold is victim or hold.start >= victim.start:
        return False
    sent, answered = release.begin.time, release.end.time
    after_grant = victim.start <= sent <= gone and hold.deadline <= sent
    lapsed_before = sent < victim.start <= answered and hold.deadline <= victim.asked
    return after_grant or lapsed_before


def _theft(release: Call, hold: Hold, victim: Hold, proof: str, on: list[Fault]) -> dict[str, Any]:
    assert release.end is not None
    return {
        "what": (
            f"{hold.who} released its hold {hold.name} at {seconds(release.begin.time)} and was "
            f"answered ok, though {victim.who} had hold {victim.name} since "
            f"{seconds(victim.start)}; that was then gone before its time: {proof}."
            f"{during(on, release.begin.time, release.end.time)}"
        ),
        "time_ns": release.end.time,
        "lock": victim.lock,
        "holds": [hold.name, victim.name],
        "ops": [release.begin.index, release.end.index],
    }


def _foreign(release: Call, hold: Hold, on: list[Fault]) -> dict[str, Any]:
    assert release.end is not None
    return {
        "what": (
            f"process {release.begin.process} released hold {hold.name} of {hold.who} at "
            f"{seconds(release.end.time)} and was answered ok."
            f"{during(on, release.begin.time, release.end.time)}"
        ),
        "time_ns": release.end.time,
        "lock": hold.lock,
        "holds": [hold.name],
        "ops": [release.begin.index, release.end.index],
    }
