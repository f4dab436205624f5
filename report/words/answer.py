"""What a run answers, for whoever asked: the verdict by the questions that count, and in words.

Not every user asks all three questions (report/words/questions.py). A user who tests a lock service
without tokens wants to know whether the service kept its promise, and knows that a client paused
past its lease believes too long. `--fail-on service` says so. Whether the test itself came
about counts for every question: nothing is true of what was not tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.checker.verdict import Valid, worst
from fencepost.report.words.questions import Question, headline, questions, untested, verdict

QUESTIONS = ("service", "clients", "data")
"""The three questions by the names that `--fail-on` has for them."""

_BY_EVERY_LOCK = "no lock service can prevent this"
_BY_NO_FENCE = (
    "its write came before any with a higher token, so a fence alone does not help; a resource "
    "that also compares the version that was read does (guard fenced-version)."
)


def counted(found: Mapping[str, Any], asked: Iterable[str] = ()) -> Valid:
    """The verdict of results.json's content on these questions and checkers; on all, without any.

    A question of which nothing was judged is "unknown".
    """
    asked = list(asked)
    if not asked:
        return verdict(found.get("valid"))
    checkers = found.get("checkers") or {}
    of_questions = dict(zip(QUESTIONS, questions(checkers), strict=True))
    answers: list[Valid] = ["unknown"] if untested(checkers) else []
    for name in asked:
        answer = of_questions[name].valid if name in QUESTIONS else _of(checkers, name)
        answers.append("unknown" if answer is None else answer)
    return worst(answers)


def sentence(found: Mapping[str, Any]) -> str:
    """Which of the questions failed, and whether they would with every lock; and whether faults
    struck at all."""
    asked = questions(found.get("checkers") or {})
    words = headline(verdict(found.get("valid")), asked)
    faults = (found.get("checkers") or {}).get("faults", {})
    if faults.get("valid") is True and found.get("faults") == []:
        words = f"{words} No fault was asked for: it says nothing of any."
    if reason := _reason(found, asked):
        words = f"{words} {reason}"
    return words


def _of(checkers: Mapping[str, Any], name: str) -> Valid | None:
    return verdict(checkers[name].get("valid")) if name in checkers else None


def _reason(found: Mapping[str, Any], asked: list[Question]) -> str:
    service, clients, data = (question.valid for question in asked)
    if service is False:
        return "A sound lock service keeps its promise under these faults."
    # Who holds a lock that the service was right to give away is past its lease, or its session.
    if clients is False:
        if ended := _session_ended(found):
            late = f"The lock went with its holder's connection ({ended}), and the holder had not "
            late += "heard of that: no lock without a lease can prevent this"
        else:
            late = f"A client worked past its lease{_struck(found)}: {_BY_EVERY_LOCK}"
        if data is True:
            return f"{late}; the guard kept it from the data."
        if data is False and _in_order(found):
            return f"{late}; {_BY_NO_FENCE}"
        return f"{late}; a fencing token can keep it from the data."
    if data is False:
        return (
            f"A write arrived when its lease was over: {_BY_EVERY_LOCK}; a fencing token can."
            if _late_write(found)
            else "The lock kept its promise: look at the guard, and at the store."
        )
    return ""


def _struck(found: Mapping[str, Any]) -> str:
    """The fault that was on a client when the first two believed at once, in its family's words."""
    evidence = found["checkers"].get("mutual_exclusion", {}).get("evidence") or [{}]
    at_ns = evidence[0].get("time_ns")
    for fault in found.get("faults") or ():
        begun, ended = fault.get("start_ns"), fault.get("end_ns")
        if at_ns is None or begun is None or begun > at_ns or (ended is not None and ended < at_ns):
            continue
        words = (fault.get("arguments") or {}).get("words")
        if words and any(node.startswith("client-") for node in fault.get("targets") or ()):
            return f" ({words})"
    return ""


def _session_ended(found: Mapping[str, Any]) -> str:
    """What took the server away, and all connections with it, before the first two believed at
    once; "" where a lease was over."""
    evidence = found["checkers"].get("mutual_exclusion", {}).get("evidence") or [{}]
    causes = evidence[0].get("cause") or ()
    if any(cause.get("sort") == "lease-over" for cause in causes):
        return ""
    gone = [cause.get("time_ns") for cause in causes if cause.get("sort") == "forgot"]
    for fault in found.get("faults") or ():
        if fault.get("start_ns") in gone:
            return str((fault.get("arguments") or {}).get("words") or fault.get("family") or "")
    return ""


def _in_order(found: Mapping[str, Any]) -> bool:
    """Whether updates were lost though the resource accepted no token after a higher one."""
    fencing = found["checkers"].get("fencing", {})
    lost = found["checkers"].get("resource", {}).get("lost_update")
    return bool(lost and fencing.get("valid") is True and fencing.get("writes"))


def _late_write(found: Mapping[str, Any]) -> bool:
    return bool(found["checkers"].get("resource", {}).get("stale"))
