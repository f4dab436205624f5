"""The verdict in words: three questions that are never mixed, and the checkers that answer each.

Did the lock *service* keep its promise, did two *clients* believe at once, was the *resource*
damaged? A client paused past its lease makes the second false for every lock there is, and
must not be booked as the service's failure. `fencing` speaks of two of them: of the tokens
that the service granted, and of the writes that the resource accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fencepost.checker.checker import About
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.verdict import Valid, worst

_THE_TEST = {
    "faults": "Every fault has the receipt that it took hold, and that it was healed.",
    "run": "The run went to its end as it was scheduled.",
}
"""Not about the lock: whether the test itself came about."""

# Each question: its answers for true, false, unknown and not checked.
_ANSWERS: dict[str, dict[Valid | None, str]] = {
    "service": {
        True: "the lock service kept its promise",
        False: "the lock service broke its promise",
        "unknown": "whether the lock service kept its promise is not known",
        None: "the lock service was not judged",
    },
    "clients": {
        True: "no two clients believed at once that they held the lock",
        False: "two clients believed at once that they held the lock",
        "unknown": "whether two clients believed at once is not known",
        None: "what the clients believed was not judged",
    },
    "resource": {
        True: "the resource was not damaged",
        False: "the resource was damaged",
        "unknown": "whether the resource was damaged is not known",
        None: "the resource was not judged",
    },
}
_TESTED = "Did the test come about?"
_TITLES = {
    "service": "Did the lock service keep its promise?",
    "clients": "Did two clients believe at once?",
    "resource": "Was the resource damaged?",
}
# Which verdict answers it with yes.
_YES = {title: key == "service" for key, title in _TITLES.items()} | {_TESTED: True}
_REMARK = (
    "A client that is paused or cut off past its lease makes this false for every lock "
    "there is. It is no failure of the service."
)
_UNTESTED = "as far as it was tested, "
_NO_LATE_WRITE = "No write was accepted after one with a higher token."


@dataclass(frozen=True)
class Part:
    """One checker's share of an answer."""

    checker: str
    about: str
    valid: Valid
    summary: str


@dataclass(frozen=True)
class Question:
    """A question, its answer, and the checkers that gave it; `valid` None: nobody was asked.

    `hedge` is what has to be said before the answer.
    """

    title: str
    valid: Valid | None
    clause: str
    parts: list[Part]
    hedge: str = ""
    remark: str = ""

    @property
    def answer(self) -> str:
        return _sentence(self.hedge + self.clause)

    @property
    def short(self) -> str:
        """Yes, no, or that it is not known."""
        if not isinstance(self.valid, bool):
            return "not known"
        return "yes" if self.valid == _YES[self.title] else "no"


def questions(checkers: Mapping[str, Mapping[str, Any]]) -> list[Question]:
    """The three questions, answered from results.json's `checkers`.

    Where a fault lacks its receipt, or the run its end, nothing is true: the lock may have
    held only because nothing tested it.
    """
    tested = not untested(checkers)
    service = [_grants(name, checkers[name]) for name in _about("service") if name in checkers]
    # A checker that is not installed here speaks of the lock until somebody says otherwise.
    known = set(ordered(checkers))
    service += [_part(name, row) for name, row in checkers.items() if name not in known]
    clients = [_part(name, checkers[name]) for name in _about("clients") if name in checkers]
    resource = [_writes(name, checkers[name]) for name in _about("resource") if name in checkers]
    kept = _question("service", service, tested)
    believed = _question("clients", clients, tested)
    if believed.valid is False and kept.valid is not False:
        believed = replace(believed, remark=_REMARK)
    return [kept, believed, _question("resource", resource, tested)]


def the_test(checkers: Mapping[str, Mapping[str, Any]]) -> Question:
    """Whether the test came about, of which no checker of a lock speaks."""
    parts = [_part(name, checkers[name]) for name in _THE_TEST if name in checkers]
    valid = worst(part.valid for part in parts) if parts else None
    return Question(_TESTED, valid, "the test came about as it was described", parts)


def question(name: str) -> str:
    """What a checker asks, as the sentence that is true when it holds; '' if it is not known."""
    return CHECKERS[name].question if name in CHECKERS else _THE_TEST.get(name, "")


def ordered(names: Iterable[str]) -> list[str]:
    """The known of these: about the service, the clients, the resource, and the test."""
    known = [*_about("service"), *_about("clients"), *_about("resource"), *_THE_TEST]
    asked = set(names)
    return [name for name in dict.fromkeys(known) if name in asked]


def _about(what: About) -> list[str]:
    return [name for name, checker in CHECKERS.items() if what in checker.about]


def untested(checkers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Why not everything was tested that was to be, in sentences; empty where it was."""
    rows = [checkers[name] for name in _THE_TEST if name in checkers]
    return [str(row.get("summary", "")) for row in rows if row.get("valid") is not True]


def headline(valid: Valid | None, asked: list[Question]) -> str:
    """One sentence for the top of the page: the verdict, and why."""
    if valid is None:
        return "No verdict: the run was cut short before its history was checked."
    word = {True: "Valid", False: "Invalid", "unknown": "Unknown"}[valid]
    clauses = [question.clause for question in asked if question.parts]
    if not clauses:
        return f"{word}: no checker was asked."
    hedge = next((question.hedge for question in asked if question.hedge), "")
    return f"{word}: {hedge}{_listed(clauses)}."


def _listed(clauses: list[str]) -> str:
    return clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])}, and {clauses[-1]}"


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def _question(key: str, parts: list[Part], tested: bool) -> Question:
    valid = worst(part.valid for part in parts) if parts else None
    clause = _ANSWERS[key][valid]
    if valid is True and not tested:
        return Question(_TITLES[key], "unknown", clause, parts, hedge=_UNTESTED)
    return Question(_TITLES[key], valid, clause, parts)


def _part(name: str, row: Mapping[str, Any]) -> Part:
    return Part(name, question(name), verdict(row.get("valid")), str(row.get("summary", "")))


def verdict(value: Any) -> Valid:
    """A stored verdict as one of true, false and "unknown": what is neither is unknown."""
    return value if isinstance(value, bool) else "unknown"


def _grants(name: str, row: Mapping[str, Any]) -> Part:
    """A checker of the service; of fencing, what it says of the tokens that were granted."""
    if name != "fencing":
        return _part(name, row)
    about, valid = "Tokens are unique and rise with every grant.", verdict(row.get("valid"))
    if valid is False and row.get("grants"):
        return Part(name, about, True, f"{row.get('tokens')} tokens were unique and rising.")
    return Part(name, about, valid, str(row.get("summary", "")))


def _writes(name: str, row: Mapping[str, Any]) -> Part:
    """A checker of the resource; of fencing, what it says of the writes that were accepted."""
    if name != "fencing":
        return _part(name, row)
    about, valid = _NO_LATE_WRITE, verdict(row.get("valid"))
    if valid is True or (valid is False and row.get("writes")):
        return Part(name, about, True, _NO_LATE_WRITE)
    return Part(name, about, valid, str(row.get("summary", "")))
