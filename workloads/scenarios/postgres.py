"""PostgreSQL's locks, which have no lease: a paused client keeps the lock, and all others wait."""

from __future__ import annotations

from fencepost.workloads.scenarios.expectations import KEPT
from fencepost.workloads.scenarios.runs import controls, explore
from fencepost.workloads.scenarios.scenario import Do, Finish, Heal, Scenario, Step
from fencepost.workloads.scenarios.schedules import (
    ONE,
    TWO,
    TWO_WRITES,
    holder_dies,
    ops,
    pause_before_write,
)
from fencepost.workloads.scenarios.sources import KLEPPMANN, OVERVIEW
from fencepost.workloads.scenarios.suite import Suite


def _sleeper_keeps_it() -> tuple[Step, ...]:
    return (
        *ops(ONE, "acquire", "read"),
        *pause_before_write("pause", ONE),
        Do(TWO, "acquire", expect="fail"),
        Heal("pause"),
        Finish(ONE),
        Do(ONE, "release"),
        *TWO_WRITES,
        Do(TWO, "release"),
    )


_SHORT = {"wait_ms": 4000}
_SLEEPER = (
    "Client 1 pauses between its grant and its write. No lease expires: client 2 waits in vain "
    "until client 1 wakes up, and the data is safe. Safety costs liveness."
)

_SCENARIOS: tuple[Scenario, ...] = tuple(
    Scenario(
        f"{name}-{mode}", claims, source, what, "none", steps, KEPT, {**_SHORT, "mode": mode},
        ttl_ms=2000,
    )
    for mode in ("advisory", "row")
    for name, claims, source, what, steps in (
        ("pause-after-acquire", ("C4",), KLEPPMANN, _SLEEPER, _sleeper_keeps_it()),
        (
            "holder-dies", ("C20", "P2"), OVERVIEW,
            "The holder crashes. Its connection breaks, and client 2 is granted the lock at once.",
            holder_dies(),
        ),
    )
)  # fmt: skip

SUITE = Suite(
    name="postgres",
    what="PostgreSQL: locks without a lease",
    lock="postgres",
    entries=(*controls(2000, {"token": "sequence"}), *_SCENARIOS, explore(2000)),
)
