"""The parts that all lock libraries of clients share: their host, grants, and renewals.

The libraries follow the adapters in workloads/locks, in timing and unknown outcomes: a deadline is
the time of sending plus the ttl, never the time of the answer; an op that certainly did not happen
is `Refused`, one that may have happened is `Unknown`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.simulated.cluster import Cluster
from tests.simulated.defects import Defect
from tests.simulated.line import Line
from tests.simulated.network import Network
from tests.simulated.plan import Plan
from tests.simulated.quorum import Quorum
from tests.simulated.service import Service
from tests.simulated.state import Owner
from tests.simulated.world import MS, Process, Steps, World

RESEND = 200 * MS
"""The time after which a library with sessions asks again."""


@dataclass
class Grant:
    """`deadline` by the client's clock; None if the library shows none. `granted_by`: the servers
    that said yes, of a quorum. `outer`: the grant that a reentrant lock gave again."""

    lock: str
    owner: Owner
    token: int | None
    deadline: int | None
    wakeups: int | None = None
    granted_by: tuple[str, ...] = ()
    outer: Grant | None = None


@dataclass(frozen=True)
class Host:
    """The arguments of a library: the world, and a way to report events of its own."""

    world: World
    network: Network
    cluster: Cluster
    service: Service
    quorum: Quorum
    defect: Defect
    plan: Plan
    process: Process
    line: Line
    stamp: Callable[[], int]
    reach: Callable[[str], Steps]
    renewed: Callable[[Grant], None]
    lost: Callable[[Grant, str], None]
    expired: Callable[[str], None]


class Keepalive:
    """Renews a lease three times a ttl; if it runs in a thread of its own, it checks the clock.

    `renew` returns the new deadline, False if the service reports an ended lease, None for silence.
    """

    def __init__(
        self,
        host: Host,
        ttl: int,
        deadline: int,
        renew: Callable[[], Steps],
        renewed: Callable[[int], None],
        lost: Callable[[bool], None],
    ) -> None:
        self._host = host
        self._ttl = ttl
        self._renew = renew
        self._renewed = renewed
        self._lost = lost
        self.deadline = deadline
        self.over = False
        host.process.start(self._renew_all())
        if host.plan.watches:
            host.process.start(self._watch())

    def _renew_all(self) -> Steps:
        while not self.over:
            yield self._host.world.now + self._ttl // 3
            if self.over:
                return
            deadline = yield from self._renew()
            if self.over:
                return
            if deadline is False:
                self._lose(True)
            elif deadline is not None:
                self.deadline = max(self.deadline, deadline)
                self._renewed(self.deadline)

    def _watch(self) -> Steps:
        while not self.over:
            left = self.deadline - self._host.stamp()
            yield self._host.world.now + max(0, left) + self._host.world.between(0.1, 20)
            if not self.over and self._host.stamp() >= self.deadline:
                self._lose(False)

    def _lose(self, said: bool) -> None:
        self.over = True
        self._lost(said)
