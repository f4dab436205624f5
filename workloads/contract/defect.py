"""The bundle of a defect: something that can be wrong with a lock, with a lock that has it.

Each file of workloads/defects is one defect. It has a class `Lock` in the contract of user locks
(docs/your-lock.md), usually a class `Sound` that differs from it in the defect alone, and its
bundle, `DEFECT`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FAMILIES = {
    "release": "Releasing",
    "lease": "The lease",
    "renewal": "Renewing a lease",
    "quorum": "Majorities of servers",
    "tokens": "Fencing tokens",
    "waiting": "Waiting for the lock",
    "modes": "Reentrant and shared holds, names",
    "answers": "Answers of the lock",
    "cancellation": "Interrupted calls",
}
"""The parts of the catalogue, in its order, with their titles."""


@dataclass(frozen=True)
class Defect:
    """A defect of a lock.

    `what` describes the mistake in one sentence. `seen` is where it was found: a library
    with its version, an issue, an article; or "by construction". `breaks` is the promise that it
    breaks. `checker` is the checker that must refute it; "" if no history shows the defect, and
    `hidden` says why. `also`: checkers that may refute it as well, because it leads there.

    `faults` are the faults that expose it, as for `fencepost test --faults`; none if it shows in a
    calm run. `servers`, `promises`, `ends_with`, `guard`, `options`, `ttl_s` and `clients` are
    settings of its test, as on the command line. `hunt` says why the hunt cannot express it; "" if
    it can. `twin`: whether the file has a class `Sound`.

    Raises ValueError for an invalid field.
    """

    name: str
    family: str
    what: str
    seen: str
    breaks: str
    checker: str
    also: tuple[str, ...] = ()
    hidden: str = ""
    faults: tuple[str, ...] = ()
    servers: str = "redis:1"
    promises: tuple[str, ...] = ()
    ends_with: str = ""
    guard: str = "none"
    options: Mapping[str, Any] = field(default_factory=dict)
    ttl_s: float = 2.0
    clients: int = 0
    shared: bool = False
    hunt: str = ""
    twin: bool = True

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(
                f"defect {self.name}: family {self.family!r} is none of {', '.join(FAMILIES)}"
            )
        if bool(self.checker) == bool(self.hidden):
            raise ValueError(f"defect {self.name}: give it either `checker` or `hidden`")
