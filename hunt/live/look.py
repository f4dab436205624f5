"""Looks at a client program: plays one schedule without a fault, before the hunt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.hunt.live.conductor import Conductor, Job
from fencepost.hunt.reigns import must_elect
from fencepost.hunt.sim.record import Row, all_have
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import MS

_TOO_LONG = 2
"""A key that lives for this many leases shows that the lease option is ignored."""


@dataclass(frozen=True)
class Look:
    """The facts that an undisturbed run shows about a program.

    `moments`: how many messages each client had. `asked`: the lock's servers got one.
    `longest_ns`: the longest lease that a grant left on a server. `worked_s`: the processor time of
    clients that took too much. `took_s`: how long it lasted; `hangs_in`: the op that did not end by
    then, "" if all did. `extends`: its leases can be extended. `promises`: those that it names
    (docs/protocol.md); None: none. `rows`: the record of the run.
    """

    moments: tuple[int, ...]
    asked: bool
    longest_ns: int
    worked_s: float
    took_s: float
    hangs_in: str
    extends: bool
    promises: list[str] | None
    rows: Sequence[Row]

    @property
    def tokens(self) -> bool:
        """Whether it gives a token with each grant."""
        return all_have(self.rows, "token")

    @property
    def deadlines(self) -> bool:
        """Whether it gives a deadline with each grant."""
        return all_have(self.rows, "deadline")

    def check(self, setting: Setting) -> None:
        """Raise Unknown if the program cannot be hunted, LockError if it is an elector and no
        candidate led."""
        if self.worked_s:
            raise Unknown(
                f"it is always at work: {self.worked_s:.0f} s of processor time in one schedule. "
                "Wait for answers and timers without a loop"
            )
        if self.hangs_in:
            raise Unknown(f"it does not end its op {self.hangs_in} within {self.took_s:.0f} s")
        if not self.asked:
            servers = ", ".join(setting.servers)
            raise Unknown(
                f"it sent nothing to its servers ({servers}): use the addresses of its setup "
                "(docs/protocol.md)"
            )
        if self.longest_ns > _TOO_LONG * setting.ttl_ns:
            raise Unknown(
                f"it ignores its lease: asked for {setting.ttl_ns // MS} ms, it took "
                f"{self.longest_ns // MS:,} ms. Use the lease that acquire is given"
            )
        if setting.elector:
            must_elect(self.rows)


def look_at(conductor: Conductor) -> Look:
    """Play an undisturbed run. Raises LockError if the program is faulty, and Unknown if it cannot
    be played."""
    begun = time.monotonic()
    run = next(iter(conductor.play([Job(Schedule())])))
    took_s = time.monotonic() - begun
    waits = [part.node.activity for part in run.parts if part.node.activity]
    named = (one.promises for one in run.programs if one.promises is not None)
    return Look(
        moments=tuple(run.moments),
        asked=run.asked,
        longest_ns=run.longest_ns,
        worked_s=run.worked_s,
        took_s=took_s,
        hangs_in=(waits or ["acquire"])[0] if run.hung else "",
        extends=all(program.extends for program in run.programs),
        promises=next(named, None),
        rows=run.rows,
    )
