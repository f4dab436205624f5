"""The faults of a run as they strike and end, written into the history as those of a real run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from fencepost.hunt.sim.record import Row, of_nemesis
from fencepost.hunt.sim.world import Timer, World
from fencepost.nemesis.families import facts

HOW = "simulated"
_MOST = 10_000


# The same few faults strike in every run, and what follows from one is not changed by anybody.
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
    """`on`: what undoes each fault that is on, by its name. `until`: when those are over that end
    by themselves."""

    def __init__(self, world: World, rows: list[Row]) -> None:
        self._world = world
        self._rows = rows
        self._count = 0
        self.on: dict[str, Callable[[], None]] = {}
        self.until = 0
        self.families: dict[str, None] = {}

    def begin(
        self,
        family: str,
        targets: list[str],
        arguments: dict[str, Any],
        words: str,
        undo: Callable[[], None],
        lasts: int | None = None,
        receipt: dict[str, Any] | None = None,
    ) -> str:
        """A fault has struck. `undo` ends it: after so many ns, or with the run."""
        world = self._world
        self._count += 1
        name = f"{family}-{self._count}"
        self.families[family] = None
        said = arguments | {"words": words}
        value = {"fault": name, "phase": "start", "targets": targets, "arguments": said}
        value |= _facts(family, targets, arguments)
        if receipt:
            value["receipt"] = receipt
        of_nemesis(self._rows, world.now, family, value, HOW)

        def end() -> None:
            if name not in self.on:
                return
            del self.on[name]
            undo()
            value = {"fault": name, "phase": "end", "targets": targets, "arguments": said}
            of_nemesis(self._rows, world.now, family, value, HOW)

        self.on[name] = end
        if lasts is not None:
            self.until = max(self.until, world.now + lasts)
            world.at(world.now + lasts, Timer(world.nowhere, end))
        return name

    def heal(self) -> None:
        for end in list(self.on.values()):
            end()
