"""The subject of a hunt: a lock, its servers and clients, faults, and a guard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fencepost.hunt.sim.world import MS
from fencepost.workloads.client.wire import Own, Setup
from fencepost.workloads.electors.plain import EXIT

STORAGE = "storage"


@dataclass(frozen=True)
class Setting:
    """The subject of a hunt.

    `test` describes it as test.json does. `faults`: the faults to inject, by their names in
    hunt/faults/registry.py. `goals`: the checkers whose violation ends the hunt. `survives`: the
    worst event that servers' data survive with this `persistence` (node/kind.py), None without a
    choice. `restart_ns`: how long a killed server stays down, None for good. `slow`: a client may
    hold the lock past its lease. `in_loop`: calls of the lock run in an event loop. `kind`: the
    kind of the servers; `version`: their version, "" for the default; `model`: the model that
    simulates them (hunt/models). `outside`: the lock brings its own connections (hunt/intercept) by
    the modules `libraries`. `elector`: it elects a leader, and holds are reigns; `deadlines`: its
    leaders know until when they lead; `stops`: what ends their work (workloads/electors/plain.py).
    `closes`: after a cancelled call a client closes its lock (workloads/client/wire.py).
    `own`: a user lock, which is in no registry; `reference`: the same servers with a lock of
    fencepost's own, to which it is compared. `live`: its clients are real programs (hunt/live).
    `slack_ns`: how long the servers may keep a lease after its end.
    """

    test: Mapping[str, Any]
    lock: str
    options: Mapping[str, Any]
    servers: tuple[str, ...]
    clients: tuple[str, ...]
    faults: tuple[str, ...]
    goals: tuple[str, ...]
    guard: str = "none"
    store: str = "redis"
    ttl_ns: int = 2000 * MS
    persistence: str = "none"
    survives: str | None = "nothing"
    restart_ns: int | None = 0
    bound_ns: int = 5000 * MS
    holds: int = 2
    replicated: bool = False
    extends: bool = True
    in_loop: bool = False
    kind: str = "redis"
    model: str = "redis"
    slow: bool = False
    ends_with: str = "lease"
    version: str = ""
    outside: bool = False
    libraries: tuple[str, ...] = ()
    elector: bool = False
    deadlines: bool = True
    stops: str = EXIT
    closes: bool = False
    own: Own | None = None
    modules: tuple[str, ...] = ()
    reference: Setting | None = None
    live: bool = False
    slack_ns: int = 0
    _setups: dict[int, Setup] = field(default_factory=dict, repr=False, compare=False)

    def setup(self, client: int) -> Setup:
        """Return the set-up of a client; it is created once."""
        made = self._setups.get(client)
        if made is None:
            made = self._setups[client] = Setup(
                process=client,
                stride=len(self.clients),
                node=self.clients[client],
                lock=self.lock,
                options=dict(self.options),
                servers=list(self.servers),
                addresses={},
                storage=STORAGE,
                store=self.store,
                guard=self.guard,
                seed="",
                origin_ns=0,
                own=self.own,
                stops=self.stops if self.elector else None,
                closes=self.closes,
            )
        return made

    @cached_property
    def lease_ns(self) -> int:
        """How long it takes the servers to end a lease."""
        return self.ttl_ns + self.slack_ns

    @cached_property
    def promised(self) -> frozenset[str]:
        """The promises of the lock (workloads/contract/locktype.py)."""
        return frozenset(name for name, made in (self.test.get("promises") or {}).items() if made)

    def promises(self, name: str) -> bool:
        """Whether the lock makes this promise."""
        return name in self.promised

    @cached_property
    def reentrant(self) -> bool:
        """Whether the lock promises that its holder may acquire it again."""
        return self.promises("reentrant")

    @cached_property
    def keeps_on(self) -> bool:
        """Whether a hold continues after a failed release (checker/facts/holds.py)."""
        return self.test.get("failed_release") == "nothing"
