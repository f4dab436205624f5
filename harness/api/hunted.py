"""The result of a hunt in Python: a story, or no counterexample."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.commandline import option
from fencepost.harness import old_names
from fencepost.harness.api.result import Result
from fencepost.harness.errors import choose
from fencepost.harness.hunting import hunts
from fencepost.harness.hunting.confirm import Confirmation, confirm
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.spec.spec import Spec
from fencepost.harness.userlock.resolve import name_of
from fencepost.hunt.story.story import drawn, numbered
from fencepost.workloads.scenarios.scenario import Scenario

Play = Callable[[Spec, Scenario], Outcome]
"""Runs a scenario on real servers, as this test."""


@dataclass(frozen=True, repr=False)
class Hunted:
    """The result of a hunt.

    `story`: the steps that break the lock, a sentence each, and a `drawing` of them; empty without
    a counterexample. `result` is the run of that schedule, None without one. `schedules`: how many
    were tried, in `seconds`. `command` repeats the hunt with its seed. `confirmation`: the outcome
    on real servers, if the hunt ran there. `covered`: the coverage of a hunt without a
    counterexample, a sentence each.
    """

    lock: str
    seed: int
    story: tuple[str, ...]
    drawing: tuple[str, ...]
    result: Result | None
    schedules: int
    seconds: float
    command: str
    confirmation: Confirmation | None = None
    covered: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        """Whether it found a schedule that breaks a promise."""
        return self.result is not None

    @property
    def valid(self) -> bool:
        """Whether it found no counterexample. That does not show that the lock is correct
        (docs/hunt.md)."""
        return not self.found

    @property
    def confirmed(self) -> bool:
        """Whether real servers did the same."""
        return self.confirmation is not None and self.confirmation.confirmed

    def assert_valid(self) -> None:
        """Raise AssertionError with the story if a schedule was found."""
        if self.found:
            raise AssertionError(self.explain())

    def explain(self) -> str:
        """Describe the counterexample: its story, the broken promise, its report; or the schedules
        tried."""
        tried = f"{self.schedules:,} schedules, {self.seconds:.1f} s"
        if self.result is None:
            lines = [
                f"No counterexample for {self.lock} in {tried}, which does not show that it is "
                "correct.",
                *self.covered,
                f"seed {self.seed}, again: {self.command}",
            ]
            return "\n".join(lines)
        lines = [
            f"{self.lock} is broken by this schedule, found after {tried}:",
            *self.story,
            *self.drawing,
            self.result.sentence,
            *(f"  {words}" for words in self.result.evidence),
            *([self.confirmation.sentence] if self.confirmation else []),
            f"seed {self.seed}, report: {self.result.report}",
            f"again: {self.command}",
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{self.explain()}>"


def hunt(
    lock: str | type,
    *,
    servers: str = "",
    ends_with: str = "",
    promises: str | Sequence[str] = "",
    options: Mapping[str, Any] | None = None,
    faults: str | list[str] | None = None,
    goal: str | list[str] | None = None,
    budget: str | float = "60s",
    clients: int = 2,
    seed: int | str | None = None,
    processes: int | None = None,
    server: str | list[str] | None = None,
    play: Play | None = None,
    **settings: Any,
) -> Hunted:
    """Search simulated runs of a lock for a schedule that breaks it (docs/hunt.md).

    It takes the arguments of `fencepost hunt`; instead of a lock's name, the class of a user lock
    with its `servers` and `promises`. `settings` are its guard, ttl, persistence and restart,
    `server` the version of its servers ("etcd=3.4"). A number as `budget` is seconds. A
    counterexample is written as a run's folder. With `play` it is confirmed on real servers.

    Raises:
        BadArguments: this lock cannot be simulated with these arguments.
        Crashed: the lock's own code failed in the simulation.
    """
    settings = old_names.keywords("hunt", settings | ({} if goal is None else {"goal": goal}))
    goals = _list(settings.pop("goal", None))
    for name in settings:
        choose("setting of a hunt", name, hunts.OWN_WORDS)
    given = {name: str(value) for name, value in settings.items() if value is not None}
    given_faults = _list(faults)
    for warning in hunts.renamed(given_faults):
        warnings.warn(warning, FutureWarning, stacklevel=2)
    versions = [server] if isinstance(server, str) else server or []
    budget = budget if isinstance(budget, str) else f"{budget:g}s"
    lock = lock if isinstance(lock, str) else name_of(lock)
    asked = hunts.described(
        lock,
        {name: str(value) for name, value in (options or {}).items()},
        given
        | ({} if seed is None else {"seed": seed})
        | ({"server": versions} if versions else {}),
        servers=servers,
        ends_with=ends_with,
        promises=promises,
        clients=clients,
        faults=given_faults,
        goal=goals,
        budget=budget,
    )
    if play is not None:
        asked.must_have_servers()
    tried, find = asked.carry_out(processes)
    again = asked.again(*option("confirm", play is not None))
    story: tuple[str, ...] = ()
    drawing: tuple[str, ...] = ()
    result = confirmation = None
    if find is not None:
        outcome, made = asked.store(tried, find, again)
        result = Result(outcome.folder.resolve(), outcome.results)
        story, drawing = tuple(numbered(find.story)), tuple(drawn(find.story, find.run))
        if play is not None and made is not None:
            scenario = made.scenario

            def played(number: int) -> Outcome:
                return play(asked.test_of(scenario, number), scenario)

            confirmation = confirm(made, played, lambda text: None)
    return Hunted(
        lock,
        asked.spec.seed,
        story,
        drawing,
        result,
        tried.schedules,
        tried.seconds,
        again,
        confirmation,
        tuple(asked.covered(tried).sentences) if find is None else (),
    )


def _list(names: str | list[str] | None) -> str | None:
    return ",".join(names) if isinstance(names, list) else names
