"""Costs of locks, as a campaign: a row and an item for each lock, and for one Redis server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fencepost.commandline import command, option
from fencepost.harness.campaigns import bench, campaign
from fencepost.harness.campaigns.bench import BASELINE, PHASES, Measured
from fencepost.harness.campaigns.item import Item, Watcher, around
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import choose
from fencepost.report.pages import bench as report
from fencepost.workloads.locks.registry import LOCKS

_KIND = "bench"


@dataclass(frozen=True)
class Plan:
    """The `locks` to compare with the baseline, each measured for `time_s` per phase."""

    locks: tuple[str, ...]
    time_s: float
    seed: int
    kind: ClassVar[str] = "bench"

    @property
    def measured(self) -> list[str]:
        return list(dict.fromkeys([BASELINE, *self.locks]))

    def to_json(self) -> dict[str, Any]:
        time, seed = option("time", f"{self.time_s:g}s"), option("seed", self.seed)
        again = command("bench", self.locks, time, seed)
        return {**asdict(self), "baseline": BASELINE, "command": again}

    def rows(self) -> list[dict[str, Any]]:
        return [{"key": lock, "lock": lock} for lock in self.measured]

    def items(self, number: int) -> list[Item]:
        """Return items that share a cluster, so that one machine measures all of them."""
        if number > 1:
            return []
        specs = [bench.spec_of(lock, self.seed) for lock in self.measured]
        return [
            Item(spec.lock, measured, 1, self.seed, _KIND, (spec,), asked=self.time_s,
                 takes_s=len(PHASES) * self.time_s + around(spec.lock_type.kind))
            for spec in specs
        ]  # fmt: skip

    def line(self, item: Item, found: Measured) -> dict[str, Any]:
        return found.to_json()


def plan(locks: tuple[str, ...], time_s: float, seed: int) -> Plan:
    """Return a plan. Raise BadArguments if there is no such lock."""
    return Plan(tuple(choose("lock", lock, LOCKS) for lock in locks), time_s, seed)


def from_json(stored: Mapping[str, Any]) -> Plan:
    """Return a stored plan. Raise BadArguments if one of its locks no longer exists."""
    found = msgspec.convert(stored, Plan)
    return plan(found.locks, found.time_s, found.seed)


def measured(item: Item, cluster: Cluster | None, watcher: Watcher) -> Measured:
    """Measure one lock."""
    assert cluster is not None
    return bench.measure(item.spec, cluster, item.asked, watcher.say)


@dataclass(frozen=True)
class Costs:
    """The folder of a bench, and its content as report/pages/bench.py reads it."""

    folder: Path
    stored: dict[str, Any]


def together(item: Item, cluster: Cluster | None, watcher: Watcher) -> Costs:
    """Measure all locks of a plan on one cluster, into the folder of a bench."""
    assert cluster is not None
    made = campaign.create(item.asked)
    for one, spec in zip(item.asked.items(1), item.specs, strict=True):
        made.add(one, bench.measure(spec, cluster, one.asked, watcher.say), "")
    report.render(made.folder)
    return Costs(made.folder, report.read(made.folder))
