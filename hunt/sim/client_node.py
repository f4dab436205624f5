"""The node of a simulated client, and the injections that wait for one of its ops."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fencepost.hunt.sim.clock import WallClock
from fencepost.hunt.sim.record import Outbox
from fencepost.hunt.sim.schedule import Aim
from fencepost.hunt.sim.world import Node


class ClientNode(Node):
    """The node of a client.

    `activity` is its current op. `when_again(f, call)` calls something when it next begins an op f.
    `inject_after` injects an action after a number of steps. `clock`
    is its wall clock, which only locks with Python's own clock read. `cancel(then)` cancels the
    running call of its lock, and calls `then` if there is one.
    """

    __slots__ = ("_again", "_aims", "activity", "cancel", "clock", "inject_after", "out")

    def __init__(
        self,
        name: str,
        index: int,
        out: Outbox,
        aims: Iterable[Aim],
        inject_after: Callable[[int, int], None],
    ) -> None:
        super().__init__(name, index)
        self.inject_after = inject_after
        self._aims = [aim for aim in aims if aim.client == index]
        self._again: list[tuple[str, Callable[[], None]]] = []
        self.activity = ""
        self.cancel: Callable[[Callable[[], None]], None] = no_call
        self.out = out
        self.clock = WallClock()

    def begins(self, f: str) -> None:
        """Note that it begins an op, for which injections may have waited."""
        self.activity = f
        if self._again:
            due = [call for op, call in self._again if op == f]
            self._again = [one for one in self._again if one[0] != f]
            for call in due:
                call()
        if self._aims:
            left = []
            for aim in self._aims:
                if aim.f != f:
                    left.append(aim)
                elif aim.nth:
                    left.append(aim._replace(nth=aim.nth - 1))
                else:
                    self.inject_after(aim.after, aim.action)
            self._aims = left

    def when_again(self, f: str, call: Callable[[], None]) -> None:
        self._again.append((f, call))


def no_call(then: Callable[[], None]) -> None:
    """Cancel nothing: no call is running."""
