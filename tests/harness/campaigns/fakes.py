"""A plan of items that cost nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from fencepost.harness.campaigns.campaign import create, resumed
from fencepost.harness.campaigns.engine import carry_out
from fencepost.harness.campaigns.executors import Clusters
from fencepost.harness.campaigns.item import Hushed, Item
from fencepost.harness.results import results


@dataclass(frozen=True)
class Left:
    """What an item of the plan below returns."""

    folder: Path | None
    words: str
    worker: int


def says(item, cluster, watcher):
    return Left(None, f"{item.row} {item.number} {item.asked}", os.getpid())


def leaves_a_run(item, cluster, watcher):
    folder = results.create("fake")
    results.write(folder / "test.json", {"row": item.row})
    return Left(folder, item.row, os.getppid())


@dataclass(frozen=True)
class Fake:
    """`rows`, each with an item a round, on the kind of cluster that its first letter names."""

    names: tuple[str, ...]
    seed: int = 7
    rounds: int = 99
    does: Any = says
    more: dict[str, Any] = field(default_factory=dict)
    kind: ClassVar[str] = "bench"

    def to_json(self):
        return {"names": list(self.names), "seed": self.seed}

    def rows(self):
        return [{"key": name} for name in self.names]

    def items(self, number):
        if number > self.rounds:
            return []
        return [
            Item(name, self.does, number, 100 * number + place, name[0], asked=self.seed,
                 takes_s=10.0, **self.more)
            for place, name in enumerate(self.names)
        ]  # fmt: skip

    def line(self, item, found):
        return {"words": found.words, "worker": found.worker}


def from_json(stored):
    return Fake(tuple(stored["names"]), stored["seed"], rounds=1)


def resume(name="latest"):
    return resumed(name, "bench", from_json, lambda words: None)


def killed_while_it_writes(at):
    """Carry out a plan, and be killed with half of a line on the disk; for a process."""
    write, lines = os.write, []

    def half(file, content):
        lines.append(content)
        if len(lines) == at:
            write(file, content[: len(content) // 2])
            os.kill(os.getpid(), 9)
        return write(file, content)

    made = create(Fake(("a1", "a2", "b1", "b2"), rounds=1))
    os.write = half
    carry_out([made], Clusters(Hushed()), lambda *line: None)
