"""Checks whether real servers agree with a simulation: runs its schedule up to three times.

A counterexample is confirmed if the schedule ran to its end, every fault has its receipt, and the
checker that found the violation in the simulation finds it in the real run too. Any other result is
a difference. It counts as an error of the model or the bridge until another cause is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.harness.judge.judge import Outcome
from fencepost.hunt.bridge.bridge import Bridge

TRIES = 3


@dataclass(frozen=True)
class Confirmation:
    """The results of the tries: the difference that each showed, "" where there was none."""

    checker: str
    cannot: tuple[str, ...]
    differences: tuple[str, ...]

    @property
    def confirmed(self) -> bool:
        return not self.cannot and bool(self.differences) and not self.differences[-1]

    @property
    def sentence(self) -> str:
        tries = len(self.differences)
        if self.cannot:
            return f"Not confirmed: {'; '.join(self.cannot)}."
        if self.confirmed:
            return (
                f"Confirmed on real servers, try {tries} of up to {TRIES}: {self.checker} is "
                "violated there, too."
            )
        return f"Not confirmed in {tries} tries. The difference: {self.differences[-1]}"


def confirm(
    bridge: Bridge, play: Callable[[int], Outcome | str], tell: Callable[[str], None]
) -> Confirmation:
    """Run a scenario until the result agrees with the simulation. `play` takes the number of the
    try, from 1 on, and returns its outcome, or the reason if it crashed."""
    (checker,) = bridge.scenario.expected
    if bridge.cannot:
        return Confirmation(checker, bridge.cannot, ())
    found: list[str] = []
    for number in range(1, TRIES + 1):
        came = play(number)
        found.append(came if isinstance(came, str) else difference(came, checker))
        if not found[-1]:
            break
        tell(f"Try {number} of up to {TRIES}: {found[-1]}")
    return Confirmation(checker, (), tuple(found))


def difference(outcome: Outcome, checker: str) -> str:
    """Return how a real run differs from the simulation, in which this checker found a
    violation."""
    verdicts = outcome.verdicts
    for name in ("run", "faults"):
        if name in verdicts and verdicts[name].valid is not True:
            return verdicts[name].summary
    if checker not in verdicts:
        return f"{checker} did not run"
    verdict = verdicts[checker]
    if verdict.valid is False:
        return ""
    return f"{checker} is {verdict.valid} on real servers, and false in the simulation: " + (
        verdict.summary
    )
