"""A checker: all that there is to know of one question to a run, in one frozen bundle.

A checker stands in its own file (`CHECKER = Checker(...)` in checker/fencing.py, say). The command
line, the judging, `--until`, the suites and the report learn it from the bundle, so that a new one
is a file, and a line in checker/checkers.py. Another package adds one with an entry point in the
group fencepost.checkers.

Most checkers are functions of the history and of the test's description, and of nothing else:
`of_history` makes a `check` of such a function. One that needs more takes it from the Run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fencepost.checker.history.history import History
from fencepost.checker.verdict import Valid, Verdict

About = Literal["service", "clients", "resource"]
"""Did the service keep its promise, did two clients believe, was the resource damaged?"""
Test = Mapping[str, Any]
"""What test.json says of a run."""


@dataclass(frozen=True)
class Run:
    """What a run left for its judges. logs: each server's log by the server's name, where there is
    one; a checker that asks for them reads them itself."""

    history: History
    test: Test
    logs: Mapping[str, Path] = field(default_factory=dict)


def _always(test: Test) -> None:
    return None


def _has_something(history: History) -> bool:
    return True


@dataclass(frozen=True)
class Checker:
    """One question. `question` is the sentence that is true where the answer is yes.

    about: which of the report's three questions it helps to answer; it may be several.
    check: its verdict on a run. at_the_end: it tells nothing of a run that still goes on.
    applies: why a test has nothing for it, as test.json describes the test; None: it has.
    touches: whether a history that came without a test has ops for it.
    control: its verdict on a run in which nothing goes wrong; None: nobody expects one.
    column: its title in tables, short.
    """

    name: str
    question: str
    about: tuple[About, ...]
    check: Callable[[Run], Verdict]
    column: str
    applies: Callable[[Test], str | None] = _always
    touches: Callable[[History], bool] = _has_something
    control: Valid | None = True
    at_the_end: bool = False


def of_history(check: Callable[[History, Test], Verdict]) -> Callable[[Run], Verdict]:
    """The check of a run that looks at its history and its test only."""
    return lambda run: check(run.history, run.test)
