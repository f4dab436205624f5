"""A scenario: a published schedule of ops and faults, and its expected outcome.

A schedule is data, so that it can be printed, stored and drawn. Each step waits for a condition,
never for a time: an op's completion, a point that a client reached, a lease's end. A step whose
outcome differs from the schedule (`expect`) ends the scenario, because then another schedule ran,
and nothing follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.workloads.scenarios.claim import listed, must_be_ids
from fencepost.workloads.scenarios.expectations import Expected

Outcome = str
"""How an op is expected to complete: "ok", "fail", "any" of both, "failing" (fail or
info), or "info"."""

_ENDS = {
    "ok": "is answered ok",
    "fail": "is refused",
    "any": "is answered",
    "failing": "is refused or not answered",
    "info": "is not answered",
}


@dataclass(frozen=True)
class Do:
    """The client does one op, and the scenario waits for it. `again`: repeat until it is as
    expected."""

    client: str
    f: str
    expect: Outcome = "ok"
    again: bool = False

    def describe(self) -> str:
        keeps = "keeps asking, until" if self.again else "asks:"
        return f"{self.client} {keeps} {self.f} {_ENDS[self.expect]}."


@dataclass(frozen=True)
class Begin:
    """The client begins an op, and the scenario does not wait for it. `stop_at`: where it stops.

    `stops`: places where it will stop later in this op; the scenario waits for each (Reach).
    """

    client: str
    f: str
    stop_at: str | None = None
    stops: tuple[str, ...] = ()

    def describe(self) -> str:
        stops = f", and is stopped at {self.stop_at}" if self.stop_at else ""
        return f"{self.client} begins to {self.f}{stops}."


@dataclass(frozen=True)
class Reach:
    """Wait until the client stops at a failpoint. `words` describe that place."""

    client: str
    point: str
    words: str = ""

    def describe(self) -> str:
        return f"{self.client} goes on {self.words or f'to {self.point}'}."


@dataclass(frozen=True)
class Finish:
    """Wait for the op that the client began."""

    client: str
    expect: Outcome = "ok"

    def describe(self) -> str:
        return f"What {self.client} had begun {_ENDS[self.expect]}."


@dataclass(frozen=True)
class Inject:
    """A fault begins. A pause at a `point` follows a Begin that stops there."""

    name: str
    family: str
    targets: tuple[str, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def describe(self) -> str:
        return f"Fault: {self.arguments.get('words') or f'{self.family} {self.targets}'}."


@dataclass(frozen=True)
class Heal:
    """A fault ends."""

    name: str

    def describe(self) -> str:
        return f"Healed: {self.name}."


@dataclass(frozen=True)
class LeaseOver:
    """Wait until the lease of the client's hold has expired, on every server too."""

    client: str

    def describe(self) -> str:
        return f"The lease of {self.client} expires."


@dataclass(frozen=True)
class TtlOver:
    """Wait for one TTL, and the half second that a server may take to notice."""

    def describe(self) -> str:
        return "One TTL passes, and half a second more."


@dataclass(frozen=True)
class NoteTime:
    """Note the time by the wall clock of the client's process."""

    client: str

    def describe(self) -> str:
        return f"{self.client} notes the time by its wall clock."


@dataclass(frozen=True)
class TtlByClock:
    """Wait until one TTL has passed since NoteTime, by the wall clock of the client's process."""

    client: str

    def describe(self) -> str:
        return f"{self.client} waits until one TTL has passed on its wall clock."


@dataclass(frozen=True)
class SyncDue:
    """Wait until `appendfsync everysec` syncs the next write at once, and none for a second after
    it.

    Redis 7.0 syncs once in each second of the wall clock, Valkey 8.0 once 1000 ms have passed since
    the last sync (flushAppendOnlyFile): a whole second passes, and then another begins.
    """

    def describe(self) -> str:
        return "A second passes and another begins."


@dataclass(frozen=True)
class Pass:
    """Wait for some seconds."""

    seconds: float

    def describe(self) -> str:
        return f"{self.seconds:.3g} s go by."


Plain = (
    Do
    | Begin
    | Reach
    | Finish
    | Inject
    | Heal
    | LeaseOver
    | TtlOver
    | NoteTime
    | TtlByClock
    | SyncDue
    | Pass
)


@dataclass(frozen=True)
class Timed:
    """A step that was `at_s` in the run that it comes from, counted from a fixed moment, and took
    `lasts_s` there.

    With `waits` it is not taken before as much time has passed since each earlier timed step as in
    that run. A step may start later than that, because real servers are slower.
    """

    step: Plain
    at_s: float
    waits: bool = False
    lasts_s: float = 0.0

    def describe(self) -> str:
        return self.step.describe()


Step = Plain | Timed


def plain(step: Step) -> Plain:
    return step.step if isinstance(step, Timed) else step


@dataclass(frozen=True)
class Scenario:
    """One schedule with one guard. `claims`: the ids of those that it tests (claims.py); `source`
    is author, title, year; `expected` by checker.

    `lock` is the suite's by default, `settings` are the run's other settings by name
    (fencepost/settings.py). `what` describes in a sentence or two the schedule and its predicted
    result. `causes`: the causes of the violation, each the name of one of its faults or a sort of
    checker/why/link.py; () means its only fault other than a partition.
    """

    name: str
    claims: tuple[str, ...]
    source: str
    what: str
    guard: str
    steps: tuple[Step, ...]
    expected: Expected
    options: Mapping[str, Any] = field(default_factory=dict)
    clients: int = 3
    ttl_ms: int = 1000
    lock: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    causes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        must_be_ids(self.name, self.claims)

    @property
    def claim(self) -> str:
        """Its claims in a phrase."""
        return listed(self.claims)

    @property
    def families(self) -> list[str]:
        """Return its families of faults, because some need servers started specially."""
        steps = [plain(step) for step in self.steps]
        return list(dict.fromkeys(step.family for step in steps if isinstance(step, Inject)))

    @property
    def counted(self) -> bool:
        """Return whether a client must stop at a step of its op (workloads/client/steps.py)."""
        return any(isinstance(step, Begin) and step.stops for step in map(plain, self.steps))

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "claim": self.claim,
            "source": self.source,
            "what": self.what,
            "families": self.families,
            **({"counted": True} if self.counted else {}),
            "steps": [step.describe() for step in self.steps],
            "expected": dict(self.expected),
        }
