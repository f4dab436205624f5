"""The bundle of a suite: schedules, timed runs, rates and costs, each with its expectation.

Each suite's file ends with its bundle, and registry.py lists the built-in ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fencepost.workloads.scenarios.claim import CONTROL, listed, must_be_ids
from fencepost.workloads.scenarios.expectations import Expected
from fencepost.workloads.scenarios.scenario import Scenario


@dataclass(frozen=True)
class Rate:
    """A count over timed runs with this many consecutive seeds.

    `of`: the holds that broke a promise, out of all holds (`violations`), or the lost updates, out
    of all acknowledged ones (`lost`; harness/campaigns/rate_counts.py). `published` is the
    published figure, as a sentence.
    """

    of: Literal["violations", "lost"]
    seeds: int = 3
    published: str = ""


@dataclass(frozen=True)
class TimedRun:
    """One entry of a suite that runs for a time, its faults (if any) drawn from the seed.

    `settings` are the run's by name (fencepost/settings.py). Nothing goes wrong in a `calm` run:
    each checker that applies is expected to give its `control` verdict, whatever checkers exist.
    Without an expectation it explores, or a `rate` is counted: any violation is a finding.
    `faults` are its schedule of faults in the format of `--schedule`, if they are not drawn.
    """

    name: str
    what: str
    expected: Expected
    claims: tuple[str, ...] = (CONTROL,)
    source: str = ""
    calm: bool = False
    lock: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    guard: str = "none"
    settings: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[Mapping[str, Any], ...] = ()
    rate: Rate | None = None

    def __post_init__(self) -> None:
        must_be_ids(self.name, self.claims)

    @property
    def claim(self) -> str:
        """Its claims in a phrase."""
        return listed(self.claims)


@dataclass(frozen=True)
class Cost:
    """The cost of locks without faults, relative to one Redis server (harness/campaigns/bench.py).

    Each of `locks` is measured for `time_s` per phase, and is expected to take longer than the one
    Redis server. `published` are published figures, as a sentence.
    """

    name: str
    what: str
    claims: tuple[str, ...]
    source: str
    locks: tuple[str, ...]
    time_s: float
    published: str = ""

    def __post_init__(self) -> None:
        must_be_ids(self.name, self.claims)

    @property
    def claim(self) -> str:
        """Its claims in a phrase."""
        return listed(self.claims)


Entry = Scenario | TimedRun | Cost


@dataclass(frozen=True)
class Suite:
    """Scenarios and timed runs in the order in which they run.

    `lock` is the default lock of every entry.

    Raises ValueError for an invalid field.
    """

    name: str
    what: str
    lock: str
    entries: tuple[Entry, ...]

    def __post_init__(self) -> None:
        if not (self.name and self.what and self.entries):
            raise ValueError(f"suite {self.name!r}: give it a name, a sentence and entries")
        seen = set()
        for entry in self.entries:
            if not isinstance(entry, Entry):
                raise ValueError(f"suite {self.name}: {entry!r} is no entry of a suite")
            place = entry.name, getattr(entry, "guard", "")
            if place in seen:
                raise ValueError(f"suite {self.name}: entry {' with guard '.join(place)} is twice")
            seen.add(place)

    @property
    def scenarios(self) -> list[Scenario]:
        return [entry for entry in self.entries if isinstance(entry, Scenario)]
