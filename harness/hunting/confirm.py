"""Whether real servers do what a simulation did: its schedule, played up to three times.

A find is confirmed where the schedule was carried out to its end, every fault with its receipt, and
the checker that found the promise broken in the simulation says so of the real run. Whatever else
comes out is a difference, and says that the model or the bridge is wrong, until shown otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.harness.judge.judge import Outcome
from fencepost.hunt.bridge.bridge import Bridge

TRIES = 3


@dataclass(frozen=True)
class Confirmation:
    """What came of the tries: the difference that each showed, "" where there was none."""

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
    """Play a scenario until it comes out as it did in the simulation. `play` is given the number
    of the try, from 1 on, and returns its outcome, or the reason if it crashed."""
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
    """What is otherwise in a real run, where the simulation had this checker say no."""
    verdicts = outcome.verdicts
    for name in ("run", "faults"):
        if name in verdicts and verdicts[name].valid is not True:
            return verdicts[name].summary
    if checker not in verdicts:
        return f"{checker} was not asked"
    verdict = verdicts[checker]
    if verdict.valid is False:
        return ""
    return f"{checker} is {verdict.valid} on real servers, and false in the simulation: " + (
        verdict.summary
    )
