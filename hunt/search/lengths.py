"""Counts the steps of the ops of an undisturbed run.

An injection into an op is drawn among the op's steps. A lock on plain connections takes a few steps
for each server; one of asyncio takes some thirty for two requests.
"""

from __future__ import annotations

from fencepost.hunt.run import Run
from fencepost.hunt.sim.world import Event


class Counting(Run):
    """A run that counts the steps of its ops."""

    def execute(self) -> Run:
        self._begun: dict[int, tuple[str, int]] = {}
        self._found: dict[str, list[int]] = {}
        return super().execute()

    @property
    def lengths(self) -> dict[str, int]:
        """Return the number of steps of the shortest op of each kind. A longer one has waited, or
        met steps of other clients."""
        return {f: min(many) for f, many in self._found.items()}

    def _next(self) -> int:
        return self.world.step + 1

    def decide(self, event: Event | None) -> int:
        step = self.world.step
        for client in self.clients:
            f, begun = self._begun.get(client.index, ("", 0))
            if client.activity != f:
                self._found.setdefault(f, []).append(step - begun)
                self._begun[client.index] = client.activity, step
        super().decide(event)
        return step + 1
