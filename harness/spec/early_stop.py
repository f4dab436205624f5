"""Which violations stop a run early (`--until`), and which one came first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fencepost import times
from fencepost.checker import leadership
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.verdict import Verdict
from fencepost.harness.errors import BadArguments

ANY = "any"
"""In `until`: a violation that any checker finds stops the run."""
OVERLAP = "overlap>"
"""In `until`, with a time: two leaders that work at once for longer stop the run."""
_LEADERSHIP = leadership.CHECKER.name


def at_the_end(name: str) -> bool:
    """Return whether this checker can judge only a run that has ended."""
    return name == "faults" or (name in CHECKERS and CHECKERS[name].at_the_end)


def stopping(test: Mapping[str, Any]) -> list[str]:
    """Return the checkers whose violations stop the run that test.json describes."""
    until = _until(test)
    names = [name for name in test["checkers"] if not at_the_end(name)]
    wanted = {_LEADERSHIP if one.startswith(OVERLAP) else one for one in until}
    return names if ANY in until else [name for name in names if name in wanted]


def stops(name: str, valid: object, figures: Mapping[str, Any], test: Mapping[str, Any]) -> bool:
    """Return whether this verdict of a checker, with its figures, stops the run that test.json
    describes."""
    until = _until(test)
    if name not in stopping(test) or valid is not False:
        return False
    if name != _LEADERSHIP or {name, ANY} & {*until}:
        return True
    least_s = min(_overlap_s(one) for one in until if one.startswith(OVERLAP))
    return float(figures["overlap_longest_s"]) > least_s


def _until(test: Mapping[str, Any]) -> Sequence[str]:
    """Return what stops the run. Older versions stored `until_violation: true` for any."""
    return test.get("until") or ([ANY] if test.get("until_violation") else [])


def _overlap_s(condition: str) -> float:
    """Return the time of overlap>TIME (s). Raises ValueError if that is no time."""
    return times.seconds(condition.removeprefix(OVERLAP))


def check_until(until: Iterable[str], checkers: Mapping[str, str | None]) -> None:
    """Raise BadArguments if an entry of `until` is neither a checker that can stop this run, nor
    overlap>TIME in a test of an elector.

    `checkers` are the test's: None, or the reason why the checker is not run.
    """
    run = [name for name, why in checkers.items() if why is None and not at_the_end(name)]
    for name in until:
        if name == ANY:
            continue
        if name.startswith(OVERLAP):
            _must_be_possible(name, checkers.get(_LEADERSHIP, "it is not there"))
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


def _must_be_possible(condition: str, why: str | None) -> None:
    """Raise BadArguments if overlap>TIME has no time, or if the test does not run leadership."""
    try:
        _overlap_s(condition)
    except ValueError as error:
        raise BadArguments(f"until {condition}: {error}") from error
    if why:
        raise BadArguments(f"until {condition}: this test does not run leadership ({why})")


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
