"""`ownership`: did a process end another's hold?

From the outside this shows only in its effects: a hold that certainly ended early
(early_losses.py), and meanwhile a release of an expired hold that was answered ok (releases.py).
Both are required, because a library that answers ok to the release of a lost lock steals nothing.
Only a release that names another process' hold, while that is certainly on, and is answered ok
needs no further proof.

If a server that lost its state or the holder's own process may have ended the hold, or the effect
of a release is unknown, the verdict is `unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.checker.checker import Checker, of_history
from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.early_losses import Loss, losses
from fencepost.checker.facts.faults import Fault, during, faults, over_time
from fencepost.checker.facts.hold_events import trusted_hold_events
from fencepost.checker.facts.holds import Hold, seconds
from fencepost.checker.facts.releases import Release, Suspects, doubt, releases
from fencepost.checker.facts.spans import Spans
from fencepost.checker.facts.tokens import trusted
from fencepost.checker.history.history import History
from fencepost.checker.signs import GRANTED_EARLY, REFUSED_HOLDER, any_of
from fencepost.checker.verdict import Verdict, count, noted
from fencepost.checker.why.cause import Causes, as_sentences, cause, causes


def ownership(history: History, test: Mapping[str, Any]) -> Verdict:
    """Check that no process ends the hold of another."""
    struck, clocks = faults(history), Clocks(test)
    on = over_time(struck)
    found = trusted(history, test, clocks)
    events = trusted_hold_events(history, test, clocks)
    released = list(releases(found, events, test, struck, clocks))
    forgetting = _forgetting(struck, history, test)
    foreign = [one for one in released if one.foreign and not _ended_before(one, clocks)]
    thefts = [_foreign(one, on) for one in foreign if _during(one, clocks)]
    doubts = [_maybe(one, on) for one in foreign if one.answered and not _during(one, clocks)]
    lost = list(losses(history, test, found, events))
    suspects = Suspects(released if lost else (), clocks)
    # Locks whose holds end early by themselves.
    frail = {
        loss.hold.lock
        for loss in lost
        if loss.shown.process == loss.hold.process
        and not any(suspects.near(loss))
        and not _forgotten(loss, forgetting, clocks)
    }
    for loss in lost:
        blame = _blame(loss, suspects, forgetting, clocks)
        if blame is not None and not blame.doubt and loss.hold.lock in frail:
            blame = _Blame(blame.release, "another hold of that lock ended early without any")
        if blame is not None and not blame.doubt:
            thefts.append(_theft(blame.release, loss, on, causes(history, test)))
        elif blame is not None:
            doubts.append(_doubted(blame, loss, on))
    lock = test.get("lock")
    elects = isinstance(lock, Mapping) and bool(lock.get("elector"))
    if elects and not (released or thefts or doubts):
        # An elector may have no resign: its leaders lead until they lose the lease.
        details = {"releases": 0, "uncertain": 0, "untested": ["resign"]}
        return Verdict(True, noted("No leader resigned.", ["resign"]), [], details)
    return _verdict(released, thefts, doubts, _untested(released, found))


def _ended_before(release: Release, clocks: Clocks) -> bool:
    """Return whether a release of another's hold was sent when that had certainly ended."""
    gap = clocks.between(release.sent.node, release.hold.node)
    return release.over_by + gap < release.sent.time


def _during(release: Release, clocks: Clocks) -> bool:
    """Return whether it was answered ok while that hold was certainly on."""
    answered, gap = release.answered, clocks.between(release.sent.node, release.hold.node)
    return answered is not None and answered.time + gap < release.on_until


def _untested(released: list[Release], found: list[Hold]) -> list[str]:
    """Return the properties that this history could not have shown to be violated."""
    late = [release for release in released if release.late and release.call.type != "info"]
    if not late:
        return ["a late release (none was sent after its own hold had ended)"]
    spans = {
        lock: Spans((hold.start, hold.gone_by, hold) for hold in mine)
        for lock, mine in _by_lock(found).items()
    }
    for release in late:
        until = release.sent.time if release.call.end is None else release.call.end.time
        near = spans[release.hold.lock].touching(release.sent.time, until)
        if any(hold.process != release.sent.process for hold in near):
            return []
    return ["a late release during another's hold"]


def _by_lock(found: list[Hold]) -> dict[str, list[Hold]]:
    rows: dict[str, list[Hold]] = {}
    for hold in found:
        rows.setdefault(hold.lock, []).append(hold)
    return rows


def _verdict(
    released: list[Release],
    thefts: list[dict[str, Any]],
    doubts: list[dict[str, Any]],
    untested: list[str],
) -> Verdict:
    answered = sum(1 for release in released if release.answered is not None)
    details = {"releases": answered, "uncertain": len(doubts), "untested": untested}
    if thefts:
        stealing = len({row["ops"][0] for row in thefts})
        summary = f"{stealing} of {count(answered, 'release')} ended the hold of another process."
        return Verdict(False, noted(summary, untested), thefts, details)
    if doubts:
        summary = (
            f"Releases may have ended {count(len(doubts), 'hold')} of other processes, lost early; "
            "the history does not decide it."
        )
        return Verdict("unknown", noted(summary, untested), doubts, details)
    if not answered:
        summary = "No release was answered ok: nothing was tested."
        return Verdict("unknown", noted(summary, untested), [], details)
    summary = f"None of {count(answered, 'release')} ended another's hold."
    return Verdict(True, noted(summary, untested), [], details)


@dataclass(frozen=True)
class _Blame:
    """A release that may have ended another's hold, and why that is uncertain ("" if it is
    certain)."""

    release: Release
    doubt: str


def _blame(
    loss: Loss, suspects: Suspects, forgetting: Spans[Fault], clocks: Clocks
) -> _Blame | None:
    """Return the release that ended this hold, or None without a suspect."""
    first: _Blame | None = None
    by_itself = ""
    for release in suspects.near(loss):
        if release.sent.process == loss.hold.process:
            by_itself = by_itself or f"its own process released hold {release.hold.name} as well"
            continue
        if release.foreign and _during(release, clocks):
            continue  # counted already
        why = doubt(release, loss, clocks)
        if why is not None and (first is None or (first.doubt and not why)):
            first = _Blame(release, why)
    if first is None or first.doubt:
        return first
    if not by_itself and loss.hold.other_end <= loss.shown.time:
        by_itself = "its own process had the lock twice, and one of the two holds had ended"
    return _Blame(first.release, by_itself or _forgotten(loss, forgetting, clocks))


def _forgetting(on: list[Fault], history: History, test: Mapping[str, Any]) -> Spans[Fault]:
    """Return the faults by which a server may lose its grants, or end them early.

    A fault with unknown effects may.
    """
    clients = set(history.nodes())
    servers = set(test.get("servers") or ())

    def hits(fault: Fault) -> bool:
        if servers:
            return not servers.isdisjoint(fault.targets)
        return not fault.targets or not clients.issuperset(fault.targets)

    # One that was not seen to heal may still be active.
    return Spans(
        (fault.start, fault.end if fault.healed else None, fault)
        for fault in on
        if fault.forgets is None or (fault.forgets and hits(fault))
    )


def _forgotten(loss: Loss, forgetting: Spans[Fault], clocks: Clocks) -> str:
    """Describe the fault that may explain a loss; '' for none."""
    hold = loss.hold
    since = loss.asked.time - clocks.bound(loss.asked.node)
    until = loss.shown.time + clocks.bound(loss.shown.node)
    # An extend may have been answered by servers that had not been heard before.
    certain = set() if hold.extends or hold.renewals else set(hold.granted_by)
    on = forgetting.touching(since, until) if certain else forgetting.latest(since, until, 1)
    for fault in reversed(on):
        known = fault.forgets is not None
        if not (certain and known and certain.isdisjoint([*fault.targets, *(fault.impairs or ())])):
            return f"a server may have forgotten it by {fault.describe()}"
    return ""


def _theft(release: Release, loss: Loss, on: Spans[Fault], known: Causes) -> dict[str, Any]:
    hold, victim, answered = release.hold, loss.hold, release.answered
    why = known.worked(hold.name, release.sent.time)
    assert answered is not None
    return {
        "what": (
            f"{hold.who} released its hold {hold.name} at {seconds(release.sent.time)} and was "
            f"answered ok, though {victim.who} had hold {victim.name} since "
            f"{seconds(victim.start)}; that hold then ended early: "
            f"{loss.how}.{as_sentences(why) or during(on, release.sent.time, answered.time)}"
        ),
        **cause(why),
        "time_ns": answered.time,
        "lock": victim.lock,
        "holds": [hold.name, victim.name],
        "ops": [release.sent.index, answered.index],
    }


def _doubted(blame: _Blame, loss: Loss, on: Spans[Fault]) -> dict[str, Any]:
    release, victim = blame.release, loss.hold
    return {
        "what": (
            f"{victim.who} had hold {victim.name} since {seconds(victim.start)}, and it ended "
            f"early: {loss.how}. The release of hold {release.hold.name} by process "
            f"{release.sent.process} at {seconds(release.sent.time)} may have ended it, but "
            f"{blame.doubt}.{during(on, victim.start, loss.shown.time)}"
        ),
        "time_ns": loss.shown.time,
        "lock": victim.lock,
        "holds": [release.hold.name, victim.name],
        "ops": [release.sent.index, loss.shown.index],
    }


def _foreign(release: Release, on: Spans[Fault]) -> dict[str, Any]:
    hold, answered = release.hold, release.answered
    assert answered is not None
    return {
        "what": (
            f"process {release.sent.process} released hold {hold.name} of {hold.who} at "
            f"{seconds(answered.time)} and was answered ok."
            f"{during(on, release.sent.time, answered.time)}"
        ),
        "time_ns": answered.time,
        "lock": hold.lock,
        "holds": [hold.name],
        "ops": [release.sent.index, answered.index],
    }


def _maybe(release: Release, on: Spans[Fault]) -> dict[str, Any]:
    row = _foreign(release, on)
    return row | {"what": f"{row['what']} That hold may have ended before."}


CHECKER = Checker(
    name="ownership",
    question="No process ended another's hold.",
    about=("service",),
    check=of_history(ownership),
    column="owner",
    goal=True,
    goal_rank=20,
    suspect=any_of(GRANTED_EARLY, REFUSED_HOLDER),
)
