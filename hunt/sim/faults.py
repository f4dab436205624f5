"""Tracks the active faults of a run, and records them as a real run does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from fencepost.hunt.sim.record import Row, of_nemesis
from fencepost.hunt.sim.world import Timer, World
from fencepost.nemesis.families import facts

HOW = "simulated"
_MOST = 10_000


# The same few faults are injected in every run, and no code modifies their facts.
_KNOWN: dict[bytes, dict[str, Any]] = {}


def _facts(family: str, targets: list[str], arguments: dict[str, Any]) -> dict[str, Any]:
    name = msgspec.json.encode((family, targets, arguments))
    found = _KNOWN.get(name)
    if found is None:
        if len(_KNOWN) >= _MOST:
            _KNOWN.clear()
        found = _KNOWN[name] = facts(family, targets, arguments)
    return found


class Faults:
    """The active faults of a run.

    `on`: a function that ends each active fault, by its name. `endless`: the families of those that
    end only with the run's work. `until`: when the last fault that
    ends by itself ends (ns). `lasts`: how long a fault without a duration of its own lasts (ns);
    None: until the run heals all faults.
    """

    def __init__(self, world: World, rows: list[Row]) -> None:
        self._world = world
        self._rows = rows
        self._count = 0
        self.on: dict[str, Callable[[], None]] = {}
        self.endless: dict[str, str] = {}
        self.until = 0
        self.families: dict[str, None] = {}
        self.lasts: Callable[[], int | None] = _until_healed

    def begin(
        self,
        family: str,
        targets: list[str],
        arguments: dict[str, Any],
        words: str,
        undo: Callable[[], None] = lambda: None,
        lasts: int | None = None,
        receipt: dict[str, Any] | None = None,
    ) -> str:
        """Record an injected fault, and return its name.

        `undo` ends the fault after `lasts` ns, or when the run heals all faults.
        """
        lasts = self.lasts() if lasts is None else lasts
        world = self._world
        self._count += 1
        name = f"{family}-{self._count}"
        self.families[family] = None
        described = arguments | {"words": words}
        value = {"fault": name, "phase": "start", "targets": targets, "arguments": described}
        value |= _facts(family, targets, arguments)
        if receipt:
            value["receipt"] = receipt
        of_nemesis(self._rows, world.now, family, value, HOW)

        def end() -> None:
            if name not in self.on:
                return
            del self.on[name]
            self.endless.pop(name, None)
            undo()
            value = {"fault": name, "phase": "end", "targets": targets, "arguments": described}
            of_nemesis(self._rows, world.now, family, value, HOW)

        self.on[name] = end
        if lasts is None:
            self.endless[name] = family
        else:
            self.until = max(self.until, world.now + lasts)
            world.at(world.now + lasts, Timer(world.nowhere, end))
        return name

    def heal(self) -> None:
        for end in list(self.on.values()):
            end()


def _until_healed() -> None:
    """A fault lasts until the run heals all faults."""
