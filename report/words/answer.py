"""A run's verdict by the questions that count, and as a sentence.

Not every user asks all three questions (report/words/questions.py). A user who tests a lock service
without tokens wants to know whether the service kept its promise, and knows that a client paused
past its lease believes too long: `--fail-on service` restricts the verdict to that. Whether the
test itself was carried out counts for every question, because a property that was not tested is not
known to hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.checker.verdict import Valid, worst
from fencepost.report.words.questions import (
    Question,
    expired_grant,
    headline,
    questions,
    untested,
    verdict,
)

QUESTIONS = ("service", "clients", "data")
"""The three questions by their names in `--fail-on`."""

_BY_EVERY_LOCK = "no lock service can prevent this"
_EXPIRED = "A client was granted the lock when its lease had expired"
_BY_A_LOOK = "a lock that looks at its clock before it returns prevents this"
_BY_NONE_OF_THESE = "the history does not show whether the lock could have known"
_BY_NO_FENCE = (
    "its write came before any with a higher token, so a fence alone does not help; a resource "
    "that also compares the version that was read does (guard fenced-version)."
)


def counted(found: Mapping[str, Any], asked: Iterable[str] = ()) -> Valid:
    """Return the verdict of results.json's content on these questions and checkers, or on all.

    A question without a judged checker is "unknown".
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
    """Say which questions failed, whether every lock would fail them, and whether faults took
    effect."""
    asked = questions(found.get("checkers") or {})
    words = headline(verdict(found.get("valid")), asked)
    faults = (found.get("checkers") or {}).get("faults", {})
    if faults.get("valid") is True and found.get("faults") == []:
        words = f"{words} No fault was requested, so it covers none."
    if reason := _reason(found, asked):
        words = f"{words} {reason}"
    return words


def _of(checkers: Mapping[str, Any], name: str) -> Valid | None:
    return verdict(checkers[name].get("valid")) if name in checkers else None


def _reason(found: Mapping[str, Any], asked: list[Question]) -> str:
    service, clients, data = (question.valid for question in asked)
    if service is False and (compared := found.get("compared")):
        return str(compared)
    if service is False:
        return "A sound lock service keeps its promise under these faults."
    # A holder whose lock the service rightly gave away is past its lease or its session.
    if (expired := expired_grant(found["checkers"])) is not None:
        return f"{_EXPIRED}: {_BY_A_LOOK if expired else _BY_NONE_OF_THESE}."
    if clients is False:
        if ended := _session_ended(found):
            late = f"The lock went with its holder's connection ({ended}), and the holder had not "
            late += "learned of that: no lock without a lease can prevent this"
        elif _unexplained(found):
            return "The history does not show why the lock was granted to the second client."
        else:
            late = f"A client worked past its lease{_struck(found)}: {_BY_EVERY_LOCK}"
        if data is True:
            return f"{late}; the guard kept it from the data."
        if data is False and _in_order(found):
            return f"{late}; {_BY_NO_FENCE}"
        return f"{late}; a fencing token can keep it from the data."
    if data is False:
        return (
            f"A write arrived after its lease had expired: {_BY_EVERY_LOCK}; a fencing token can."
            if _late_write(found)
            else "The lock kept its promise: check the guard and the store."
        )
    return ""


def _struck(found: Mapping[str, Any]) -> str:
    """Return the fault at a client when the first two believed at once, in its family's words."""
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
    """Return the fault that killed the server and its connections before the first two believed at
    once; "" if a lease had expired."""
    causes = _causes(found)
    if any(cause.get("sort") == "lease-over" for cause in causes):
        return ""
    gone = [cause.get("time_ns") for cause in causes if cause.get("sort") == "forgot"]
    for fault in found.get("faults") or ():
        if fault.get("start_ns") in gone:
            return str((fault.get("arguments") or {}).get("words") or fault.get("family") or "")
    return ""


def _unexplained(found: Mapping[str, Any]) -> bool:
    """Return whether no cause is known for the first two that believed at once."""
    return "none" in [cause.get("sort") for cause in _causes(found)]


def _causes(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the causes of the first two that believed at once."""
    evidence = found["checkers"].get("mutual_exclusion", {}).get("evidence") or [{}]
    return list(evidence[0].get("cause") or ())


def _in_order(found: Mapping[str, Any]) -> bool:
    """Return whether updates were lost although the resource accepted tokens in order."""
    fencing = found["checkers"].get("fencing", {})
    lost = found["checkers"].get("resource", {}).get("lost_update")
    return bool(lost and fencing.get("valid") is True and fencing.get("writes"))


def _late_write(found: Mapping[str, Any]) -> bool:
    return bool(found["checkers"].get("resource", {}).get("stale"))
