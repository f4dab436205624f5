"""The verdict in words: three separate questions, and the checkers that answer each.

Did the lock *service* keep its promise, did two *clients* believe at once, was the *resource*
damaged? A client paused past its lease fails the second with every lock, and this must not count as
the service's failure. `fencing` answers two of them: it checks the tokens that the service granted,
and the writes that the resource accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fencepost.checker.checker import About
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.verdict import Valid, worst

_THE_TEST = {
    "faults": "Every fault has a receipt that it took effect, and one that it was healed.",
    "run": "The run was completed as scheduled.",
}
"""About the test itself, not the lock."""

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
        None: "the clients' beliefs were not judged",
    },
    "resource": {
        True: "the resource was not damaged",
        False: "the resource was damaged",
        "unknown": "whether the resource was damaged is not known",
        None: "the resource was not judged",
    },
}
_TESTED = "Was the test carried out?"
_TITLES = {
    "service": "Did the lock service keep its promise?",
    "clients": "Did two clients believe at once?",
    "resource": "Was the resource damaged?",
}
# The verdict that means yes.
_YES = {title: key == "service" for key, title in _TITLES.items()} | {_TESTED: True}
_REMARK = (
    "A client that is paused or cut off past its lease makes this false with every lock. It is "
    "not a failure of the service."
)
_HANDED_OUT = "the lock handed out a grant whose lease had expired"
_UNTESTED = "as far as it was tested, "
_NO_LATE_WRITE = "No write was accepted after one with a higher token."


@dataclass(frozen=True)
class Part:
    """One checker's part of an answer."""

    checker: str
    about: str
    valid: Valid
    summary: str


@dataclass(frozen=True)
class Question:
    """A question, its answer, and the checkers that gave it; `valid` is None without a checker.

    `hedge` is a reservation that precedes the answer.
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
        """Return yes, no, or that it is not known."""
        if not isinstance(self.valid, bool):
            return "not known"
        return "yes" if self.valid == _YES[self.title] else "no"


def questions(checkers: Mapping[str, Mapping[str, Any]]) -> list[Question]:
    """Answer the three questions from results.json's `checkers`.

    If a fault lacks its receipt, or the run was cut short, no answer is true: the lock may have
    held only because nothing tested it.
    """
    tested = not untested(checkers)
    service = [_grants(name, checkers[name]) for name in _about("service") if name in checkers]
    # Without its declaration, a checker that is not installed here is taken to judge the lock.
    known = set(ordered(checkers))
    service += [_part(name, row) for name, row in checkers.items() if name not in known]
    clients = [_part(name, checkers[name]) for name in _about("clients") if name in checkers]
    resource = [_writes(name, checkers[name]) for name in _about("resource") if name in checkers]
    kept = _question("service", service, tested)
    believed = _question("clients", clients, tested)
    expired = expired_grant(checkers)
    if expired and kept.parts and kept.valid is not False:
        kept = replace(kept, valid=False, clause=_HANDED_OUT, hedge="")
    if believed.valid is False and kept.valid is not False and expired is None:
        believed = replace(believed, remark=_REMARK)
    return [kept, believed, _question("resource", resource, tested)]


def expired_grant(checkers: Mapping[str, Mapping[str, Any]]) -> bool | None:
    """Return whether the lock certainly handed out a grant whose lease had expired, by which two
    clients believed or the data was damaged; None if no first piece of evidence names such a
    grant, and no other one a certain one."""
    doubtful = False
    for name in (*_about("clients"), *_about("resource")):
        for place, piece in enumerate(checkers.get(name, {}).get("evidence") or ()):
            for link in piece.get("cause") or ():
                if link.get("sort") == "expired-grant" and link.get("sure") is True:
                    return True
                doubtful |= link.get("sort") == "expired-grant" and place == 0
    return False if doubtful else None


def the_test(checkers: Mapping[str, Mapping[str, Any]]) -> Question:
    """Return whether the test was carried out, which no checker of a lock judges."""
    parts = [_part(name, checkers[name]) for name in _THE_TEST if name in checkers]
    valid = worst(part.valid for part in parts) if parts else None
    return Question(_TESTED, valid, "the test was carried out as described", parts)


def question(name: str) -> str:
    """Return a checker's question as a sentence that is true if it holds; '' if it is unknown."""
    return CHECKERS[name].question if name in CHECKERS else _THE_TEST.get(name, "")


def ordered(names: Iterable[str]) -> list[str]:
    """Order the known of these: about the service, the clients, the resource, and the test."""
    known = [*_about("service"), *_about("clients"), *_about("resource"), *_THE_TEST]
    asked = set(names)
    return [name for name in dict.fromkeys(known) if name in asked]


def _about(what: About) -> list[str]:
    return [name for name, checker in CHECKERS.items() if what in checker.about]


def untested(checkers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return why not everything was tested as planned, in sentences; empty if it was."""
    rows = [checkers[name] for name in _THE_TEST if name in checkers]
    return [str(row.get("summary", "")) for row in rows if row.get("valid") is not True]


def headline(valid: Valid | None, asked: list[Question]) -> str:
    """Return one sentence for the top of the page: the verdict, and why."""
    if valid is None:
        return "No verdict: the run was cut short before its history was checked."
    word = {True: "Valid", False: "Invalid", "unknown": "Unknown"}[valid]
    clauses = [question.clause for question in asked if question.parts]
    if not clauses:
        return f"{word}: no checker ran."
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
    """Return a stored verdict as true, false or "unknown"; anything else is unknown."""
    return value if isinstance(value, bool) else "unknown"


def _grants(name: str, row: Mapping[str, Any]) -> Part:
    """Return a checker's answer on the service; for fencing, on the tokens that were granted."""
    if name != "fencing":
        return _part(name, row)
    about, valid = "Tokens are unique and rise with every grant.", verdict(row.get("valid"))
    if valid is False and row.get("grants"):
        return Part(name, about, True, f"{row.get('tokens')} tokens were unique and rising.")
    return Part(name, about, valid, str(row.get("summary", "")))


def _writes(name: str, row: Mapping[str, Any]) -> Part:
    """Return a checker's answer on the resource; for fencing, on the writes that were accepted."""
    if name != "fencing":
        return _part(name, row)
    about, valid = _NO_LATE_WRITE, verdict(row.get("valid"))
    if valid is True or (valid is False and row.get("writes")):
        return Part(name, about, True, _NO_LATE_WRITE)
    return Part(name, about, valid, str(row.get("summary", "")))
