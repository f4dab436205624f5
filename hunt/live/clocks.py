"""The clocks of a run's programs: they show a client the time of the run.

Otherwise a client's own clock runs on while time stands still. A client that polls until a lease
should have ended then gives up before it ends. A client that waits for the processor meets other
answers when a schedule is played again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol


class Waits(Protocol):
    """The timed waits of a program whose clocks jump. `earliest(now)`: when the first one ends, in
    ns of the run; NEVER if none does, None while a thread is at work. `end(now)`: end those whose
    time has come; False if the program has to be stopped and continued for that."""

    def earliest(self, now: int) -> int | None: ...
    def end(self, now: int) -> bool: ...
    def close(self) -> None: ...


class Clock(Protocol):
    """The clocks of one program, in ns of its monotonic clock. `jumps`: they may jump to the end of
    a timed wait, which ends then. `hurries`: between two runs as well, because its waits do not end
    by themselves. `later_ns`: all but the wall clock show so much more."""

    jumps: bool
    hurries: bool
    later_ns: int

    def stand(self, shown_ns: int) -> None: ...
    def run(self, shown_ns: int, since_ns: int) -> None: ...
    def waits(self) -> Waits: ...
    def close(self) -> None: ...


OfProgram = Callable[[int], Clock | None]
"""Returns the clocks of a process; None where they cannot be set."""


def not_set(pid: int) -> Clock | None:
    """Leave the clocks of a process alone."""


class Clocks:
    """The clocks of all programs of a run. `base_ns`: they show it at time 0 of the run."""

    def __init__(self, clocks: Sequence[Clock], base_ns: int) -> None:
        self._clocks = list(clocks)
        self.base_ns = base_ns
        self.jumps = all(one.jumps for one in clocks)
        # The time at which all of them stand, if they do. A write of a clock takes some 10 us.
        self._stands: int | None = None

    def drop(self, clock: Clock | None) -> None:
        """Leave out those of a process that has ended."""
        if clock in self._clocks:
            self._clocks.remove(clock)

    def add(self, clock: Clock, now: int, really: int) -> None:
        """Take those of a process that has started during the run, and let them stand. It has read
        the real ones until now, and a monotonic clock must not go back: Node.js aborts then."""
        clock.later_ns += max(0, really - self.base_ns - now)
        clock.stand(self.base_ns + now)
        self._clocks.append(clock)

    def stand(self, now: int) -> None:
        """Stop them at this time of the run."""
        if self._stands == now:
            return
        self._stands = now
        for one in self._clocks:
            one.stand(self.base_ns + now)

    def run(self, now: int, since_ns: int) -> None:
        """Let them run: at `since_ns` of the real clock, it was this time of the run."""
        self._stands = None
        for one in self._clocks:
            one.run(self.base_ns + now, since_ns)

    def set_right(self, now: int, since_ns: int) -> int:
        """Let them show the real time again, after the run. Clocks that have jumped ahead of it
        stay ahead, because a monotonic clock must not go back. Return by how much, in ns."""
        self._stands = None
        ahead = max(0, self.base_ns + now - since_ns)
        for one in self._clocks:
            one.run(since_ns + ahead, since_ns)
        return ahead
