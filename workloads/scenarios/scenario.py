"""A scenario: a schedule of ops and faults that somebody published, and what is to come of it.

A schedule is data, so that it can be printed, stored and drawn. Each step waits for a
condition, never for a time: an op's completion, a point that a client reached, a lease's end.
A step that does not come out as the schedule has it (`expect`) ends the scenario: then it was
not this schedule that ran, and nothing follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
    """The client does one op and it is waited for. `again`: until it is as expected."""

    client: str
    f: str
    expect: Outcome = "ok"
    again: bool = False

    def describe(self) -> str:
        keeps = "keeps asking, until" if self.again else "asks:"
        return f"{self.client} {keeps} {self.f} {_ENDS[self.expect]}."


@dataclass(frozen=True)
class Begin:
    """The client begins an op, which is not waited for. `stop_at`: it stops itself there.

    `stops`: where it will stop later on in this op, each of which is waited for (Reach)."""

    client: str
    f: str
    stop_at: str | None = None
    stops: tuple[str, ...] = ()

    def describe(self) -> str:
        stops = f", and is stopped at {self.stop_at}" if self.stop_at else ""
        return f"{self.client} begins to {self.f}{stops}."


@dataclass(frozen=True)
class Reach:
    """Until the client stops at a failpoint. `words`: what that place is."""

    client: str
    point: str
    words: str = ""

    def describe(self) -> str:
        return f"{self.client} goes on {self.words or f'to {self.point}'}."


@dataclass(frozen=True)
class Finish:
    """The op that the client began is waited for."""

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
    """Until the lease of the client's hold is over, and every server has let go of it."""

    client: str

    def describe(self) -> str:
        return f"The lease of {self.client} runs out."


@dataclass(frozen=True)
class TtlOver:
    """One TTL goes by, and the half second that a server may take to notice."""

    def describe(self) -> str:
        return "One TTL goes by, and half a second more."


@dataclass(frozen=True)
class NoteTime:
    """The time is noted by the wall clock of the client's process."""

    client: str

    def describe(self) -> str:
        return f"{self.client} notes the time by its wall clock."


@dataclass(frozen=True)
class TtlByClock:
    """Until one TTL has gone by since NoteTime, by the wall clock of the client's process."""

    client: str

    def describe(self) -> str:
        return f"{self.client} waits until one TTL has gone by on its wall clock."


@dataclass(frozen=True)
class SyncDue:
    """Until `appendfsync everysec` syncs the next write at once, and none for a second after it.

    Redis 7.0 syncs once in each second of the wall clock, Valkey 8.0 once 1000 ms have passed since
    the last sync (flushAppendOnlyFile): a whole second goes by, and then another begins.
    """

    def describe(self) -> str:
        return "A second goes by and another begins."


@dataclass(frozen=True)
class Pass:
    """Some seconds go by."""

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
    """A step that was `at_s` in the run that it comes from, counted from any fixed moment, and took
    `lasts_s` there.

    With `waits` it is not taken before as much time has gone by since each earlier timed step as
    had there. It may always be taken later: real servers need their time.
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
    """One schedule with one guard. `source` is author, title, year; `expected` by checker.

    `lock` is the suite's where none is named, `settings` are the run's other ones by name
    (fencepost/settings.py). `what` says in a sentence or two what happens, and what its author says
    comes of it. `causes`: what breaks the lock, each the name of one of its faults or a sort of
    checker/why/cause.py; () stands for its one fault that is no partition.
    """

    name: str
    claim: str
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

    @property
    def families(self) -> list[str]:
        """Its families of faults: for some a server must be started."""
        steps = [plain(step) for step in self.steps]
        return list(dict.fromkeys(step.family for step in steps if isinstance(step, Inject)))

    @property
    def counted(self) -> bool:
        """Whether a client is to stop at a step of its op (workloads/client/steps.py)."""
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
