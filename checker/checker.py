"""A checker: one question to a run, completely described by one frozen bundle.

Each checker has its own file (for example `CHECKER = Checker(...)` in checker/fencing.py). The
command line, the judging, `--until`, the suites and the report read the bundle, so that a new
checker is a file, and a line in checker/checkers.py. Another package adds one with an entry point
in the group fencepost.checkers.

Most checkers are functions of the history and the test's description only: `of_history` turns such
a function into a `check`. Others read the Run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from fencepost.checker.facts.crash_lines import CrashLines, crash_lines
from fencepost.checker.history.history import History
from fencepost.checker.signs import Signs, always
from fencepost.checker.verdict import Valid, Verdict

About = Literal["service", "clients", "resource"]
"""Did the service keep its promise, did two clients believe, was the resource damaged?"""
Test = Mapping[str, Any]
"""The content of a run's test.json."""


@dataclass(frozen=True)
class Run:
    """The input of checkers. logs: each server's log by the server's name, if it exists; a checker
    that needs them reads them itself. crash_lines: the lines by which such servers crash."""

    history: History
    test: Test
    logs: Mapping[str, Path] = field(default_factory=dict)
    crash_lines: CrashLines = field(default_factory=crash_lines)


def _always(test: Test) -> None:
    return None


def _has_something(history: History) -> bool:
    return True


@dataclass(frozen=True)
class Checker:
    """One question. `question` is the sentence that is true if the answer is yes.

    about: the questions of the report that it helps to answer. check: its verdict on a run.
    at_the_end: it has no verdict on a run in progress. needs_logs: it reads the servers' logs,
    which a simulated run lacks. of_time: its violation is that something came too late or never,
    which a busy machine can cause, too. applies: why it does not apply to a test,
    from its test.json; None: it does. touches: whether a history without a test has ops for it.
    control: its verdict on a run in which nothing goes wrong; None: no expectation. column: its
    short title in tables.

    goal: whether a hunt can search for a violation of it. Those about the service are searched for
    unless the user names others. goal_rank: a hunt shrinks a counterexample for the violated goal
    of the lowest rank. suspect: whether a simulated run with these signs (checker/signs.py) may
    violate it.

    Raises ValueError for an invalid field.
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
    needs_logs: bool = False
    of_time: bool = False
    goal: bool = False
    goal_rank: int = 100
    suspect: Callable[[Signs], bool] = always

    def __post_init__(self) -> None:
        if not (self.name and self.question and self.column):
            raise ValueError(f"checker {self.name!r}: give it a name, a question and a column")
        if not self.about or set(self.about) - set(get_args(About)):
            valid = ", ".join(get_args(About))
            raise ValueError(f"checker {self.name}: about {self.about!r} is not some of {valid}")


def of_history(check: Callable[[History, Test], Verdict]) -> Callable[[Run], Verdict]:
    """Return the check of a function of the history and the test."""
    return lambda run: check(run.history, run.test)
