"""Questions and checkers that decide an exit code or an assertion (`--fail-on`), validated
early."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencepost.checker.checkers import CHECKERS
from fencepost.harness.errors import BadArguments
from fencepost.report.words.answer import QUESTIONS

ALL = "all"


def read(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the questions and checkers named; none means all.

    Raises:
        BadArguments: one of them is neither.
    """
    words = given.split(",") if isinstance(given, str) else list(given or ())
    names = tuple(dict.fromkeys(word.strip() for word in words if word.strip()))
    if names == (ALL,):
        return ()
    for name in names:
        if name not in QUESTIONS and name not in CHECKERS:
            raise BadArguments(
                f"fail-on {name}: there is no such question or checker; choose from: "
                f"{', '.join((ALL, *QUESTIONS, *CHECKERS))}"
            )
    return names


def must_be_judged(asked: Iterable[str], not_checked: Mapping[str, str]) -> None:
    """Raise BadArguments, with the reason, if the test does not run one of these checkers."""
    for name in asked:
        if why := not_checked.get(name):
            raise BadArguments(f"fail-on {name}: this test does not run it ({why})")
