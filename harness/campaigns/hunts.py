"""Hunts from many seeds, as a campaign: a row and an item for each seed, and one page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fencepost.commandline import command, option
from fencepost.harness import old_names
from fencepost.harness.campaigns.campaign import Campaign
from fencepost.harness.campaigns.item import Item, Watcher
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import BadArguments
from fencepost.harness.hunting.hunts import Hunt, described
from fencepost.hunt.search import campaign as search
from fencepost.hunt.search.campaign import Merged, Outcome, covered, merged
from fencepost.hunt.search.hunt import replay
from fencepost.hunt.search.search import Tried
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.story.story import drawn
from fencepost.report.pages import campaign as page


@dataclass(frozen=True)
class Plan:
    """`asked`: the arguments of the hunt, as `hunting.described` takes them."""

    lock: str
    seeds: tuple[int, ...]
    asked: Mapping[str, Any]
    kind: ClassVar[str] = "campaign"

    @property
    def seed(self) -> int:
        return self.seeds[0]

    @cached_property
    def hunt(self) -> Hunt:
        return described(self.lock, **old_names.translated("hunt", self.asked))

    def to_json(self) -> dict[str, Any]:
        return {"lock": self.lock, "seeds": list(self.seeds), "asked": dict(self.asked)}

    def rows(self) -> list[dict[str, Any]]:
        return [{"key": str(seed)} for seed in self.seeds]

    def items(self, number: int) -> Sequence[Item]:
        if number > 1:
            return []
        hunt = self.hunt
        return [
            Item(str(seed), work, 1, seed, takes_s=hunt.budget_s, leaves=False,
                 asked=search.Item(hunt.setting, seed, hunt.budget_s, hunt.depth, hunt.inherent))
            for seed in self.seeds
        ]  # fmt: skip

    def line(self, item: Item, found: Outcome) -> dict[str, Any]:
        return found.to_json()


def plan(lock: str, asked: Mapping[str, Any], seeds: int) -> Plan:
    """Return a plan of hunts from consecutive seeds, from the given one on.

    Raises:
        BadArguments: this lock cannot be simulated so.
    """
    first = described(lock, **asked).spec.seed
    return Plan(lock, tuple(range(first, first + seeds)), asked)


def from_json(lock: str, stored: Mapping[str, Any]) -> Plan:
    """Return a stored plan. Raise BadArguments if it is of another lock than this one, if any."""
    found = msgspec.convert(stored, Plan)
    if lock and found.lock != lock:
        raise BadArguments(f"the campaign hunts {found.lock}, not {lock}")
    found.items(1)  # raises if `asked` does not describe a hunt
    return found


def work(item: Item, cluster: Cluster | None, watcher: Watcher) -> Outcome:
    """Hunt from one seed, in this process."""
    return search.work(item.asked)


def total(made: Campaign) -> Merged:
    """Merge the outcomes of all seeds that have finished."""
    lines = (line for lines in made.lines.values() for line in lines)
    return merged(
        Outcome(line["seed"], 0, 0.0, failure=line["crashed"])
        if "crashed" in line
        else msgspec.convert(line, Outcome)
        for line in lines
    )


def render(made: Campaign) -> Path:
    """Write the page, and run each minimal schedule again, into its own run folder."""
    assert isinstance(made.plan, Plan)
    found, hunt = total(made), made.plan.hunt
    again = command("hunt", made.plan.lock, option("resume", made.folder.name))
    groups = []
    for group in found.groups:
        numbers = list(group.schedule)
        find = replay(hunt.setting, Schedule.of(numbers, len(hunt.setting.clients)))
        outcome, _ = hunt.store(Tried(schedules=found.schedules), find, again)
        groups.append(
            {
                "broken": list(group.broken),
                "strikes": group.strikes,
                "seeds": list(group.seeds),
                "story": list(group.story),
                "drawing": drawn(find.story, find.run),
                "report": os.path.relpath(outcome.folder / "report.html", made.folder),
            }
        )
    values = {
        name: getattr(found, name)
        for name in ("seeds", "found", "schedules", "seconds", "rate", "states", "covered", "new",
                     "struck", "inherent", "failures")
    }  # fmt: skip
    values["coverage"] = covered(hunt.setting, found).to_json() if found.schedules else {}
    values |= {"lock": made.plan.lock, "command": again, "groups": groups}
    return page.render(made.folder, values | {"left": len(made.left(1))})
