"""A long simulated run: the work of real clients, with faults again and again, and calm between.

The clients do what they do in `fencepost test` (workloads/client/critical_section.py), for LEASES
leases of virtual time. In that time, faults come for STORM leases. Then no fault comes until all
have ended, each lease has expired, and the bound of liveness has passed, so that a lock that never
recovers shows. A killed client returns as another process.

Injections wait for a moment of an op, as the aimed ones of a hunt do (hunt/search/draw.py): most
defects show within a few steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from fencepost.hunt.faults.kill import BOOT
from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.history.injections import Injection, Injector
from fencepost.hunt.run import Run
from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.workloads.client.client import Client
from fencepost.workloads.client.critical_section import GIVE_UP, CriticalSection, Settings

LEASES, STORM = 100, 8
"""How long a run is, and how long faults come at a time, in leases."""
_REST = 3
"""Leases that the end of the holds may take."""
_LASTS, _LONG = (0.5, 2), 0.2
"""How long a fault lasts, in leases; the share of those that last longer than a lease and the bound
of liveness, because only these show whether the lock is usable meanwhile."""
_AGAIN = 0.15
"""The longest time before a refused client asks again, in leases. Real clients ask more often,
which costs time here and shows nothing more."""
_LIKELY = 0.25
"""The probability of an injection at a moment that fits."""
_BESIDE = 0.15
"""The probability that it comes although another fault is active."""
_MOST_STEPS = 2_000_000


class LongRun(Run):
    """A run whose `seed` determines its work and its faults. `work` are the settings of the
    generator, as a client of a real run receives them."""

    most_steps = _MOST_STEPS

    def __init__(
        self, setting: Setting, seed: str, injectors: Sequence[Injector], work: Settings
    ) -> None:
        self._random = random = Random(f"{seed}/faults")
        self._table: list[Action] = []
        super().__init__(setting, Schedule((random.randrange(1 << 16),)), self._table)
        self.faults.lasts = self._lasts
        self._injectors, self._seed, self._work = injectors, seed, work
        self._until = LEASES * setting.ttl_ns
        # Until when faults come; then, from when on they come again.
        self._ends, self._begins_again = STORM * setting.ttl_ns, 0
        self._awaited = self._drawn_next()
        self._lengths = (4, 4 + 3 * len(setting.servers), 10 * len(setting.servers))

    def work(self, node: ClientNode, client: Client) -> None:
        settings = replace(self._work, client=node.index, shared_seed=self._seed)
        if not client.extends:
            settings = replace(settings, extend=0.0)
        section = CriticalSection(settings, f"{self._seed}/{node.out.process}/work")
        step, world, again = section.first(self.world.now), self.world, 0
        while True:
            world.sleep(again or round(step.after_s * 1e9))
            if step.f == "acquire" and world.now >= self._until:
                return
            if step.f == GIVE_UP:
                done = client.give_up(step.value)
            else:
                self._begins(node, step.f)
                done = client.apply(step.f, step.value)
                if step.f == "acquire" and done[0] == "ok":
                    self._begins(node, "granted")
            again = 0
            if step.f == "acquire" and done[0] != "ok":
                again = int(self._random.uniform(0.01, _AGAIN) * self.setting.ttl_ns)
            step = section.next(step.f, *done, world.now)

    def _begins(self, node: ClientNode, moment: str) -> None:
        """Note that a client is at a moment, and inject the next fault if it waits for that."""
        if moment != "granted":
            node.begins(moment)
        if not self._storms or self._awaited is None or moment not in self._awaited.moments:
            return
        random = self._random
        on = {name.rpartition("-")[0] for name in self.faults.on}
        likely = 0 if self._awaited.family in on else _LIKELY * (_BESIDE if on else 1)
        if random.random() >= likely:
            return
        self._table.append(self._awaited.action(node.name, self._lasts()))
        # The moment of a grant is now.
        after = 0 if moment == "granted" else int(random.random() * random.choice(self._lengths))
        self.inject_after(after, len(self._table))
        self._awaited = self._drawn_next()

    def _drawn_next(self) -> Injection | None:
        if not self._injectors:
            return None
        return self._random.choice(self._injectors).draw(self._random)

    @property
    def _storms(self) -> bool:
        """Whether faults come now; none come near the end."""
        now, ttl = self.world.now, self.setting.ttl_ns
        calm = _REST * ttl + self.setting.bound_ns
        if now >= self._ends and self._begins_again < self._ends:
            self._begins_again = max(now, self.faults.until) + calm
        if now >= self._begins_again > self._ends:
            self._ends = now + STORM * ttl
        return now < self._ends and now < self._until - 2 * calm

    def _lasts(self) -> int:
        """Return how long the next fault lasts (ns)."""
        setting, random = self.setting, self._random
        if random.random() < _LONG:
            return int(random.uniform(1.2, 1.6) * (setting.ttl_ns + setting.bound_ns))
        return int(random.uniform(*_LASTS) * setting.ttl_ns)

    def gone(self, node: ClientNode) -> None:
        """Start the client again, as another process."""

        def live() -> None:
            node.out.process += len(self.clients)
            client = self.client(node, node.out)
            self.work(node, client)
            self.rest(node, client)

        node.up, node.paused_until = True, 0
        self.begin(node, live, self.world.now + BOOT)
