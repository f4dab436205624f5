"""The clocks of a run's programs: they show a client the time of the run.

Otherwise a client's own clock runs on while time stands still. A client that polls until a lease
should have ended then gives up before it ends. A client that waits for the processor meets other
answers when a schedule is played again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Protocol

from fencepost.hunt.live.rest import Rest


class Waits(Protocol):
    """The timed waits of a program whose clocks jump. `waits()`: it does nothing until something
    happens, or a wait ends. `earliest(now)`: when the first one ends, in ns of the run; NEVER if
    none does, None while a thread is at work. `end(now)`: end those whose time has come. `poke`:
    the program was sent something; `wakes`: it surely waits for this."""

    def waits(self) -> bool: ...
    def poke(self, wakes: bool = True) -> None: ...
    def earliest(self, now: int) -> int | None: ...
    def end(self, now: int) -> None: ...
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
    def waits(self, rest: Rest) -> Waits: ...
    def close(self) -> None: ...


OfProgram = Callable[[int], Clock | None]
"""Returns the clocks of a process; None where they cannot be set."""


def not_set(pid: int) -> Clock | None:
    """Leave the clocks of a process alone."""


class Clocks:
    """The clocks of all programs of a run. `base_ns`: they show it at time 0 of the run. `stood`:
    the times of the run at which they have stood, the latest one last."""

    def __init__(self, clocks: Sequence[Clock], base_ns: int) -> None:
        self._clocks = list(clocks)
        self.base_ns = base_ns
        self.jumps = all(one.jumps for one in clocks)
        # The time at which all of them stand, if they do. A write of a clock takes some 10 us.
        self._stands: int | None = None
        self.stood = [0]

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

    @property
    def shown(self) -> int:
        """The time of the run at which they stood last."""
        return self.stood[-1]

    def behind(self, now: int) -> int:
        """Return by how much this time is behind the next one at which they stood; negative if they
        have not stood so late. A client that works for long while time catches up has read an
        earlier one."""
        place = min(bisect_left(self.stood, now), len(self.stood) - 1)
        return self.stood[place] - now

    def stand(self, now: int) -> None:
        """Stop them at this time of the run."""
        if self._stands == now:
            return
        self._stands = now
        self.stood.append(max(now, self.stood[-1]))
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
