"""The error of a run that a person interrupted; it carries the verdict so far."""

from __future__ import annotations

from fencepost.harness.judge.judge import Outcome


class Interrupted(KeyboardInterrupt):
    """A person interrupted the run; `outcome` is the verdict so far."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


def must_have_ended(failure: BaseException | None, outcome: Outcome) -> None:
    """Raise the error that ended a run early, if one did; Interrupted for a Ctrl-C."""
    if isinstance(failure, KeyboardInterrupt):
        raise Interrupted(outcome) from failure
    if failure is not None:
        raise failure
