"""Loads a run from its folder, whole or cut short.

A killed run leaves a description and a history without results; one that died early, or whose file
was cut, leaves less. Whatever exists is loaded, and `problems` names the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost import runfiles
from fencepost.checker.facts.ends import ends_with
from fencepost.checker.history.history import History, HistoryError, read
from fencepost.runfiles import Message


class ReportError(Exception):
    """A folder holds nothing to report on. The message names the folder, the problem and the
    remedy."""


@dataclass(frozen=True)
class Run:
    """`test` describes the run, `results` are None if there are none; `problems` are sentences;
    `messages`: those of a counterexample, if they were recorded."""

    test: dict[str, Any]
    results: dict[str, Any] | None
    history: History
    problems: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)


def load(
    folder: Path, history: History | None = None, results: dict[str, Any] | None = None
) -> Run:
    """Load the folder of a run. Pass `history` and `results` if they are already loaded.

    Raises:
        ReportError: test.json is missing or is not a JSON object: this is not the folder of a run.
    """
    try:
        test = runfiles.description(folder)
        ends_with(test)
    except (OSError, ValueError) as error:
        raise ReportError(
            f"{folder}: no report, because its test.json cannot be read ({_why(error)}); "
            f"name the folder of a run, such as results/latest"
        ) from error
    problems: list[str] = []
    try:
        if results is None:
            results = runfiles.results(folder / "results.json")
    except FileNotFoundError:
        problems.append("The run ended before its checkers: it has no results.json.")
    except (OSError, ValueError) as error:
        problems.append(f"results.json cannot be read: {_why(error)}.")
    try:
        found = read(folder / "history.jsonl") if history is None else history
        found.calls()  # which must pair
    except HistoryError as error:
        problems.append(
            f"The picture could not be drawn, because the history cannot be read: {error}."
        )
        found = History([])
    messages: list[Message] = []
    try:
        messages = runfiles.messages(folder / runfiles.MESSAGES).messages
    except FileNotFoundError:
        pass  # only a counterexample of a hunt has them
    except (OSError, ValueError) as error:
        problems.append(f"The messages are not drawn: messages.json cannot be read: {_why(error)}.")
    return Run(test, results, found, problems, messages)


def _why(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
