"""A run that a person ended: what was seen of it is judged, and goes with the error."""

from __future__ import annotations

from fencepost.harness.judge.judge import Outcome


class Interrupted(KeyboardInterrupt):
    """A person ended the run before it was over; `outcome` is what can be said of it so far."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


def must_have_ended(failure: BaseException | None, outcome: Outcome) -> None:
    """Raise what ended a run before it was over, if anything did; Interrupted for a Ctrl-C."""
    if isinstance(failure, KeyboardInterrupt):
        raise Interrupted(outcome) from failure
    if failure is not None:
        raise failure
