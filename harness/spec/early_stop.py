"""Which violations stop a run early (`--until`), and which one came first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.checker.checkers import CHECKERS
from fencepost.checker.verdict import Verdict
from fencepost.harness.errors import BadArguments

ANY = "any"
"""In `until`: a violation that any checker finds stops the run."""


def at_the_end(name: str) -> bool:
    """Return whether this checker can judge only a run that has ended."""
    return name == "faults" or (name in CHECKERS and CHECKERS[name].at_the_end)


def stopping(test: Mapping[str, Any]) -> list[str]:
    """Return the checkers whose violations stop the run that test.json describes.

    Older versions stored `until_violation: true` for any.
    """
    until = test.get("until") or ([ANY] if test.get("until_violation") else [])
    names = [name for name in test["checkers"] if not at_the_end(name)]
    return names if ANY in until else [name for name in names if name in until]


def check_until(until: Iterable[str], checkers: Mapping[str, str | None]) -> None:
    """Raise BadArguments if a name in `until` is not a checker that can stop this run.

    `checkers` are the test's: None, or the reason why the checker is not run.
    """
    run = [name for name, why in checkers.items() if why is None and not at_the_end(name)]
    for name in until:
        if name == ANY:
            continue
        valid = f"choose from: {', '.join((*run, ANY))}"
        if at_the_end(name):
            raise BadArguments(
                f"until {name}: it can only be judged once the run has ended; {valid}"
            )
        if name not in checkers:
            raise BadArguments(f"until {name}: there is no such checker; {valid}")
        if why := checkers[name]:
            raise BadArguments(f"until {name}: this test does not run it ({why}); {valid}")


def first_violation(verdicts: Mapping[str, Verdict]) -> dict[str, Any] | None:
    """Return the time, the checker and the description of the first violation; None if there is
    none."""
    found = [
        (int(piece["time_ns"]), name, str(piece.get("what", "")))
        for name, verdict in verdicts.items()
        if verdict.valid is False
        for piece in verdict.evidence
        if "time_ns" in piece
    ]
    if not found:
        return None
    time_ns, name, what = min(found)
    return {"time_s": time_ns / 1e9, "checker": name, "what": what}
