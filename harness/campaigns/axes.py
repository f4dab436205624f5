"""The axes of a sweep: settings and fault properties that vary, as a test has them.

An axis is a setting of the test, an option of the lock, or a property of a fault. A sweep has one
of a fault, or names a fault that stays the same. Families of faults define their own axes
(nemesis/axis.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fencepost.nemesis.axis import FaultAxis
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.targets import Layout
from fencepost.setting import TIME_S, WHOLE, Form
from fencepost.workloads.electors.arithmetic import RENEW_DEADLINE, RETRY


@dataclass(frozen=True)
class Axis:
    """`what` describes a value; `form` parses and formats it. Values lie from `least` to `most`.

    `even`: steps are equal differences; otherwise equal ratios. `sets`: the setting that the value
    is for; `option`: the option of the lock, in ms; otherwise `injects` gives a fault as a row of a
    schedule, and `work` the clients' work.
    """

    name: str
    title: str
    what: str
    form: Form
    least: float
    most: float
    even: bool = False
    sets: Callable[[float], Mapping[str, Any]] | None = None
    option: str = ""
    injects: Callable[[float, Layout, Random], dict[str, Any]] | None = None
    work: Mapping[str, Any] = field(default_factory=dict)


def _of_fault(family: str, axis: FaultAxis) -> Axis:
    def injects(value: float, at: Layout, random: Random) -> dict[str, Any]:
        drawn = axis.draw(value, at, random)
        return {"family": family, "targets": drawn.targets, "duration_s": drawn.duration_s,
                "arguments": drawn.arguments}  # fmt: skip

    return Axis(
        axis.name, axis.title, axis.what, axis.form, axis.least, axis.most, axis.even,
        injects=injects, work=axis.work,
    )  # fmt: skip


AXES = {
    axis.name: axis
    for axis in (
        Axis("ttl", "TTL", "the lease of a grant", TIME_S, 0.1, 600,
             sets=lambda value: {"ttl_ms": round(value * 1000)}),
        Axis("clients", "clients", "how many clients ask for the lock", WHOLE, 2, 10, even=True,
             sets=lambda value: {"concurrency": round(value)}),
        Axis("renew-deadline", "renew deadline", "how long a leader tries to renew",
             TIME_S, 0.1, 600, option=RENEW_DEADLINE),
        Axis("retry-period", "retry period", "how long an elector waits between two tries",
             TIME_S, 0.01, 600, option=RETRY),
        *(_of_fault(one.name, axis) for one in FAMILIES.sound()[0] for axis in one.axes),
    )
}  # fmt: skip
"""Every axis, by its name in --x and --y."""
SETTINGS = [name for name, axis in AXES.items() if axis.injects is None]
"""The axes that are no property of a fault."""
OF_FAULTS = [name for name, axis in AXES.items() if axis.injects is not None]
