"""Ends a simulated run in which no call of a lock ends any more, and faults that would last.

A lock may wait without a limit: for a message that was sent before it listened, or for a key that a
dead client has left. A run looks for that after some leases. First it ends the faults that would
last until all clients have done their work. If no event of the history comes for long after that,
and the clients have not merely to wait for one timeout, their calls are recorded as unanswered, and
the checkers judge the run as it is.

Clients of some servers wait for ever for one that does not answer. With these, endless faults end
after some leases.
"""

from __future__ import annotations

from typing import Protocol

from fencepost.checker.history.history import NEMESIS
from fencepost.hunt.faults.registry import SIMULATED
from fencepost.hunt.sim.faults import Faults
from fencepost.hunt.sim.network import Network
from fencepost.hunt.sim.record import Row
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Timer, World
from fencepost.workloads.contract.lock import Indeterminate

_PATIENCE = 3
"""After how many leases endless faults end, if clients of such servers wait for them for ever."""
_FIRST = 10
"""After how many leases a run looks for the first time: nearly all have ended by then."""
_POLLS = 20
"""A lock that asks again and again takes more steps than this between two looks."""
_LONGEST_NS = 1_000_000_000_000
"""Longer than any timeout of TCP (hunt/intercept/sockets.py)."""
_SINGLE = ("lost", "renewed")
"""Events that may come between the invocation of an op and its completion."""


class Run(Protocol):
    """The part of a run that is needed here."""

    setting: Setting
    world: World
    network: Network
    faults: Faults
    rows: list[Row]
    came_back: bool
    working: int


class Watch:
    """Looks at a run from time to time. `gave_up`: its calls were recorded as unanswered."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._rows = self._steps = -1
        self._healed = self.gave_up = False
        self._look_in(_FIRST * run.setting.lease_ns)

    def _look_in(self, ns: int) -> None:
        world = self._run.world
        self._next = Timer(world.nowhere, self._look)
        world.at(world.now + ns, self._next)

    def forget(self) -> None:
        """Look no more. The next look would keep the run in a reference cycle."""
        self._next.call = _nothing

    def _look(self) -> None:
        run, steps = self._run, self._run.world.step
        idle = len(run.rows) == self._rows
        waits = not self._expects or steps - self._steps > _POLLS
        if idle and waits and self._healed:
            self._give_up()
            return
        self._healed = idle and waits
        if self._healed:
            for name in list(run.faults.endless):
                run.faults.on[name]()
            run.network.recover()
        self._rows, self._steps = len(run.rows), steps
        self._look_in(2 * run.setting.lease_ns + run.setting.bound_ns)

    @property
    def _expects(self) -> bool:
        """Whether an event will come, but for the next look, and sooner than after any timeout."""
        world = self._run.world
        return any(
            not event.off and event.node.up and time < world.now + _LONGEST_NS
            for time, _, event in world.queue
        )

    def _give_up(self) -> None:
        run = self._run
        self.gave_up, run.came_back, run.world.over = True, False, True
        for process, row in _open(run.rows).items():
            error = Indeterminate("timeout", "the call does not end")
            _, _, _, f, value, _, node, _ = row
            run.rows.append((run.world.now, process, "info", f, value, error, node, run.world.step))


def _nothing() -> None:
    """Do not look."""


def relent_later(run: Run) -> None:
    """End the faults that would last until all clients have done their work, if some still work
    then; those of nodes that restart later than the others."""
    _relent_later(run, _until_restarted())


def _relent_later(run: Run, not_yet: tuple[str, ...]) -> None:
    """Do so in some leases; the faults of these families last longer."""

    def relent() -> None:
        for name, family in list(run.faults.endless.items()):
            if family not in not_yet:
                run.faults.on[name]()
        if run.working:
            _relent_later(run, () if not_yet else _until_restarted())

    world = run.world
    at = world.now + _PATIENCE * run.setting.ttl_ns
    world.at(at, Timer(world.nowhere, relent))


def _until_restarted() -> tuple[str, ...]:
    """Return the families whose faults keep nodes away until they restart."""
    return tuple(one.name for one in SIMULATED.values() if one.restarts)


def _open(rows: list[Row]) -> dict[int | str, Row]:
    """Return the invocation of each op that has not ended, by its process."""
    found: dict[int | str, Row] = {}
    for row in rows:
        process, type, f = row[1:4]
        if process != NEMESIS and f not in _SINGLE:
            if type == "invoke":
                found[process] = row
            else:
                found.pop(process, None)
    return found
