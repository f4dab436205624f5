"""Carries out triggered faults (triggers.py): watches the holds, and injects at the right moment.

One trigger at a time, in its own thread, so that a signal interrupts none of it half-way
(timetable.py explains why). The triggers are recorded with their holders and times, and the faults
as a schedule. Given triggers are replayed in their order; each first waits for a hold of the same
client, for a while, so that a replay meets the same moment.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Protocol

from msgspec.structs import replace

from fencepost.nemesis.failpoints import missed
from fencepost.nemesis.families import describe
from fencepost.nemesis.nemesis import Fault, Receipt
from fencepost.nemesis.schedule import Scheduled
from fencepost.nemesis.targets import HOLDER, Layout
from fencepost.nemesis.trigger_draws import draws
from fencepost.nemesis.triggers import Injection, Trigger, meets_a_grant

_LOOK_S, _UNTIL_S = 0.004, 0.05
QUIET_START_S = 1.0
_MOMENT_TTLS = 6.0
"""How long a trigger waits for its moment."""
_SAME_TTLS = 4.0
"""How long a replayed one waits for a hold of the same client."""
_EDGE_TTLS = 2.0
"""How long it waits for the edge of a lease before it takes any hold: one that is renewed in the
background has no edge."""
_FREE_TTLS = 3.0
"""How long one that meets the reply to an acquire waits until no client holds the lock: most other
acquires are refused."""
_ENOUGH = 0.3
"""The part of a lease that must be left, so that an injection can have an effect before its end."""

_MISSES = {"between-requests": 1}
"""How often clients may miss a failpoint before it is given up, because waiting for it wastes the
time of the run; else twice. Not every lock sends a second request in an op, which is known at once.
Extensions are rare."""


class Lease(Protocol):
    """A grant that was not released yet. `lost`: its holder has reported it lost."""

    @property
    def client(self) -> str: ...
    @property
    def start_ns(self) -> int: ...
    @property
    def deadline_ns(self) -> int | None: ...
    @property
    def lost(self) -> bool: ...
    def leased(self, now_ns: int) -> bool:
        """Return whether its lease is running, also if its holder has reported it lost."""


class Watch(Protocol):
    """The state of a run that triggers use; times in ns since its start."""

    def now(self) -> int: ...
    def leases(self) -> Sequence[Lease]:
        """Return the current ones, the oldest first."""

    def grants(self, without: str) -> int:
        """Return how many grants other clients have had."""


class Injector(Protocol):
    """Injects and heals: the director."""

    @property
    def on(self) -> list[Fault]:
        """Return the active faults."""

    def inject(self, fault: Fault) -> Receipt: ...
    def heal(self, name: str) -> Receipt: ...


class Aim:
    """Carries out triggers. `given`: triggers to replay; without them they are drawn from the
    seed."""

    def __init__(
        self,
        entries: Sequence[str],
        seed: int,
        layout: Layout,
        watch: Watch,
        given: Sequence[Trigger] = (),
    ) -> None:
        self._entries, self._seed, self._layout = entries, seed, layout
        self._watch = watch
        self._given = given
        self._stopped = threading.Event()
        self._count = count(1)
        self._failed: list[BaseException] = []
        self._missed: Counter[str] = Counter()
        self.triggered: list[Trigger] = []
        self.schedule: list[Scheduled] = []

    def run(self, injector: Injector, until: Callable[[], bool]) -> None:
        """Carry out one trigger after the other until `until` returns true, and heal active faults.

        Errors of injecting or healing are raised once all is healed.
        """
        thread = threading.Thread(target=self._all, args=(injector,), name="aim", daemon=True)
        thread.start()
        try:
            while thread.is_alive() and not until():
                time.sleep(_UNTIL_S)
        finally:
            self._stopped.set()
            thread.join()
        if self._failed:
            raise self._failed[0]

    def _all(self, injector: Injector) -> None:
        try:
            self._sleep(QUIET_START_S)
            for trigger in self._triggers():
                if self._stopped.is_set():
                    return
                self._run_one(trigger, injector)
                self._sleep(trigger.rest_s)
        except BaseException as error:  # raised again for the caller
            self._failed.append(error)

    def _triggers(self) -> Iterator[Trigger]:
        if self._given:
            yield from self._given
            return
        yield from draws(self._entries, self._seed, self._layout, self._given_up)

    def _given_up(self) -> list[str]:
        """Return the failpoints that clients have missed too often."""
        return [one for one, often in self._missed.items() if often >= _MISSES.get(one, 2)]

    def _run_one(self, trigger: Trigger, injector: Injector) -> None:
        on: list[tuple[str, int]] = []
        seen = replace(trigger, holder=None, at_s=None)
        try:
            for injection in trigger.before:
                self._inject(injection, injector, on)
            found, holder = self._moment(trigger)
            if found:
                at_s = round(self._watch.now() / 1e9, 3)
                before = self._watch.grants(holder) if holder else 0
                for injection in trigger.strike:
                    if trigger.kind in ("point", "request") and injection.arguments.get("point"):
                        # The first client that reaches a failpoint is hit there (failpoints.py).
                        hit = self._inject(injection, injector, on)
                        holder = holder if hit == HOLDER else hit
                        before = self._watch.grants(holder) if holder else 0
                    else:
                        self._inject(injection.at(holder), injector, on)
                seen = replace(seen, holder=holder, at_s=at_s)
                self._wait(trigger, holder, before)
        finally:
            self.triggered.append(seen)
            for place, begun_ns in reversed(on):
                injector.heal(place)
                self._healed(place, begun_ns)

    def _inject(self, injection: Injection, injector: Injector, on: list[tuple[str, int]]) -> str:
        """Inject a fault, and return the client whose request it meets, or the first node that it
        hits."""
        number = next(self._count)
        name = f"aim-{number}"
        begun_ns = self._watch.now()
        on.append((name, begun_ns))
        words = describe(injection.family, injection.targets, injection.arguments)
        arguments = injection.arguments | {"words": words}
        self.schedule.append(
            Scheduled(round(begun_ns / 1e9, 3), 0.0, injection.family, injection.targets, arguments)
        )
        fault = Fault(name, injection.family, injection.targets, injection.arguments)
        receipt, point = injector.inject(fault), injection.arguments.get("point")
        if point and missed(receipt.data):
            self._missed[point] += 1
        hit = next((one for one in injector.on if one.name == name), fault)
        self.schedule[-1] = replace(
            self.schedule[-1], targets=hit.targets, arguments=arguments | hit.arguments
        )
        return str(hit.arguments.get("client", hit.targets[0]))

    def _healed(self, name: str, begun_ns: int) -> None:
        place = int(name.removeprefix("aim-")) - 1
        lasted_s = round((self._watch.now() - begun_ns) / 1e9, 3)
        self.schedule[place] = replace(self.schedule[place], duration_s=lasted_s)

    def _moment(self, trigger: Trigger) -> tuple[bool, str | None]:
        """Wait for the trigger's moment; return whether it came, and the hold."""
        if trigger.kind in ("free", "request"):
            return True, None
        begun = time.monotonic()
        ttl_s = self._layout.ttl_s
        while not self._stopped.is_set():
            waited_s = time.monotonic() - begun
            if waited_s > _MOMENT_TTLS * ttl_s:
                break
            only = trigger.holder if waited_s < _SAME_TTLS * ttl_s else None
            leases = self._watch.leases()
            if waited_s < _FREE_TTLS * ttl_s and meets_a_grant(trigger):
                if not any(lease.leased(self._watch.now()) for lease in leases):
                    return True, None
                leases = []
            # The latest first: an earlier holder may not know yet that it has lost the lock.
            for lease in reversed(leases):
                if self._ripe(lease, trigger, waited_s) and only in (None, lease.client):
                    return True, lease.client
            self._stopped.wait(_LOOK_S)
        return False, None

    def _ripe(self, lease: Lease, trigger: Trigger, waited_s: float) -> bool:
        """Return whether enough of this hold's lease has passed, and some is left."""
        ttl_ns = self._layout.ttl_s * 1e9
        now = self._watch.now()
        if trigger.kind == "point":
            return not lease.lost
        if lease.deadline_ns is None:
            return not lease.lost and now - lease.start_ns >= trigger.share * ttl_ns
        left_ns = lease.deadline_ns - now
        if trigger.kind == "edge":
            # A hold that its holder no longer counts on is released late.
            late = waited_s > _EDGE_TTLS * self._layout.ttl_s
            return 0 < left_ns <= (1 if late else 1 - trigger.share) * ttl_ns
        enough = left_ns > _ENOUGH * ttl_ns
        return not lease.lost and enough and now - lease.start_ns >= trigger.share * ttl_ns

    def _wait(self, trigger: Trigger, holder: str | None, before: int) -> None:
        """Wait until the injection ends."""
        end = time.monotonic() + trigger.lasts_s
        while not self._stopped.is_set() and time.monotonic() < end:
            if trigger.until_grant and holder and self._watch.grants(holder) > before:
                return
            self._stopped.wait(_LOOK_S)

    def _sleep(self, time_s: float) -> None:
        self._stopped.wait(time_s)
