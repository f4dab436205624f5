"""`leadership`: did the work of each leader end before that of the next one began?

The lease may be sound while the old leader works on, because its elector has not called `stopped`.
The verdict names every overlap of work with the faults that may explain it, and has the figures of
the election (facts/reigns.py): the time without a leader, how long a take-over took after each
cause, changes of leader without a cause, and beats begun after `stopped`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.checker.checker import Checker, Test, of_history
from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.holds import seconds
from fencepost.checker.facts.reigns import TwoAtWork, figures, reigns, two_at_work
from fencepost.checker.history.history import History
from fencepost.checker.verdict import Valid, Verdict, count
from fencepost.checker.why.cause import Causes, Link, as_sentences, cause, causes, headline

NO_ELECTOR = "the lock is not an elector"
"""Why it does not apply. A test of a lock does not mention it."""


def leadership(history: History, test: Mapping[str, Any]) -> Verdict:
    """Check that no two leaders worked at once. Fewer than two reigns decide nothing."""
    found = reigns(history, test)
    both = two_at_work(found, Clocks(test))
    known = figures(history, test)
    valid: Valid = False if both else True if len(found) > 1 else "unknown"
    began: dict[int, TwoAtWork] = {}
    for one in both:
        began.setdefault(one.first.hold.index, one)
    whys = [_why(one, began[one.first.hold.index], causes(history, test)) for one in both]
    evidence = [_evidence(one, why) for one, why in zip(both, whys, strict=True)]
    return Verdict(valid, _summary(both, whys, known), evidence, known)


def _why(one: TwoAtWork, began: TwoAtWork, known: Causes) -> list[Link]:
    """Return why a leader began while an earlier one worked. No fault explains the work of one
    whose elector had called `stopped`. `began`: when the earlier one lost its lease, which may have
    been to another leader."""
    if one.first.told <= one.start:
        return []
    return known.overlap(began.first.hold, began.second.hold, began.start)


def _summary(both: list[TwoAtWork], whys: list[list[Link]], known: Mapping[str, Any]) -> str:
    led = count(known["reigns"], "reign")
    if both:
        words = (
            f"Two leaders worked at once {count(len(both), 'time')}, for at most "
            f"{known['overlap_longest_s']:.3f} s and {known['overlap_total_s']:.3f} s in total "
            f"(error of the clocks: {known['clock_error_s']:.3f} s), in {led}; the first at "
            f"{seconds(both[0].start)}{headline(whys[0])}."
        )
    elif known["reigns"] > 1:
        words = f"No two leaders worked at once, in {led}."
    else:
        words = f"The leader never changed ({led})."
    took = ", ".join(
        f"{row['median']:.3f} s after {cause} ({row['count']})"
        for cause, row in known["take_over_s"].items()
    )
    more = f" {known['without_leader_s']:.3f} s without a leader."
    more += f" Median take-over: {took}." if took else ""
    if known["changes_without_cause"]:
        more += f" {count(known['changes_without_cause'], 'change')} of leader without a cause."
    if known["beats_after_stopped"]:
        more += f" {count(known['beats_after_stopped'], 'beat')} of work begun after stopped."
    return words + more


def _evidence(one: TwoAtWork, why: list[Link]) -> dict[str, Any]:
    first, second, told = one.first.hold, one.second.hold, ""
    if one.first.told <= one.start:
        told = f", although its elector called stopped at {seconds(one.first.told)}"
    return {
        "what": (
            f"{second.who} led from {seconds(one.start)} on ({second.name}), while {first.who} "
            f"({first.name}), which led since {seconds(first.start)}, worked until "
            f"{seconds(one.first.work_end)}{told}: two at work for "
            f"{(one.end - one.start) / 1e9:.3f} s.{as_sentences(why)}"
        ),
        "time_ns": one.start,
        "until_ns": one.end,
        **cause(why),
        "lock": second.lock,
        "holds": [first.name, second.name],
        "ops": [first.index, second.index],
    }


def _applies(test: Test) -> str | None:
    lock = test.get("lock")
    elects = isinstance(lock, Mapping) and bool(lock.get("elector"))
    return None if elects else NO_ELECTOR


CHECKER = Checker(
    name="leadership",
    question="The work of each leader ended before that of the next one began.",
    about=("clients",),
    check=of_history(leadership),
    column="leaders",
    applies=_applies,
    touches=lambda history: False,
    goal=True,
    goal_rank=15,
)
