"""The parts of a run: the lock, its clients, the guard, the network and the faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.checkers import CHECKERS
from tests.simulated.world import MS, SECOND

WAYS = ("lease", "close", "connection", "quorum")
"""The kinds of service. The first three are one state machine, named by what ends their holds; in
a quorum each server has leases of its own."""
DOWN = ("kill", "power", "membership", "memory", "disk", "failover")
"""Families that stop a server. A sound service keeps its grants."""


@dataclass(frozen=True)
class Strike:
    """One fault, in ns. `point`: the failpoint of a client at which to stop or kill it."""

    at: int
    duration: int
    family: str
    targets: tuple[str, ...]
    arguments: dict[str, Any] = field(default_factory=dict)
    point: str = ""
    proved: bool = True


@dataclass(frozen=True)
class Plan:
    """Times in ns. Each setting is explained where it is used.

    `idle`: how many of the clients ask for nothing. `grain`: the step of everybody's clock.
    """

    way: str
    defect: str
    clients: int
    servers: int
    locks: int
    length: int
    ttl: int
    bound: int
    wait: int
    timeout: int
    storage_timeout: int
    think: int
    rest: int
    shared: float
    tokens: str
    guard: str
    promises: dict[str, bool]
    loss: float = 0.0
    errors: tuple[int, ...] = ()
    error_bound: int = 0
    failed_release: str = "ended"
    one_resource: bool = False
    nameless: bool = False
    silent_close: bool = False
    careful: bool = False
    watchdog: bool = False
    watches: bool = True
    polite: bool = False
    twice: float = 0.0
    uneven: bool = False
    confirm: bool = False
    naive: bool = False
    visible: bool = True
    wakeups: bool = False
    extends: float = 0.3
    lingers: float = 0.1
    idle: int = 0
    grain: int = 0
    reentrant: bool = False
    drift: float = 0.0
    lost_releases: float = 0.0
    garbled: float = 0.0
    factor: float = 1.0
    crash: int = 0
    cut_off: int = 0
    strikes: tuple[Strike, ...] = ()

    @property
    def ends_with(self) -> str:
        """Return the `ends_with` of the lock, for its test.json."""
        return "lease" if self.way == "quorum" else self.way

    def clock(self, now: int) -> int:
        """Return a time as a clock of this grain shows it."""
        return now - now % self.grain if self.grain else now

    @property
    def server_names(self) -> list[str]:
        return [f"server-{n + 1}" for n in range(self.servers)]

    @property
    def client_names(self) -> list[str]:
        return [f"client-{n + 1}" for n in range(self.clients)]

    @property
    def asking(self) -> list[str]:
        return self.client_names[: self.clients - self.idle]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return each lock with the resource that it protects."""
        one = self.one_resource
        return [(f"lock-{n}", f"account-{1 if one else n}") for n in range(1, self.locks + 1)]

    def test(self) -> dict[str, Any]:
        """Return the test.json of the run."""
        row: dict[str, Any] = {
            "name": "simulated",
            "lock": {
                "name": "simulated",
                "options": {},
                "ends_with": self.ends_with,
                "token": self.tokens != "none",
            },
            "shared": self.shared,
            "guard": self.guard,
            "servers": self.server_names,
            "clients": self.client_names,
            "locks": self.locks,
            "concurrency": self.clients,
            "ttl_ms": self.ttl // MS,
            "failed_release": self.failed_release,
            "liveness_bound_s": self.bound / SECOND,
            "promises": self.promises,
            "nemesis": sorted({strike.family for strike in self.strikes}),
        }
        if self.error_bound:
            row["clocks"] = {
                node: {"offset_ns": 0, "bound_ns": self.error_bound} for node in self.client_names
            }
        reasons = {name: checker.applies(row) for name, checker in CHECKERS.items()}
        reasons["server-log"] = "simulated servers write no log"
        return row | {
            "checkers": [name for name, why in reasons.items() if why is None],
            "not_checked": {name: why for name, why in reasons.items() if why},
        }
