"""The work of a client that elects a leader: campaign, work while it leads, and step down.

The work is a series of beats. In each one the leader reads and writes the resource, as the holder
of a lock does. It ends when its elector calls `stopped`, when its deadline passes, and at the end
of its time. An elector that drives its work has no beats but the jobs that its library sends
(electors/jobs.py). The process ends with the work, unless the client waits for callbacks only
(`stops`), or has stepped down by `resign`. A process that was not elected ends as well.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import msgspec

from fencepost.workloads.client.client import Client
from fencepost.workloads.client.critical_section import Settings
from fencepost.workloads.client.orders import Orders
from fencepost.workloads.client.succession import Succession
from fencepost.workloads.client.wire import Outbox
from fencepost.workloads.contract.lock import Indeterminate
from fencepost.workloads.electors.jobs import Jobs
from fencepost.workloads.electors.plain import CALLBACK, REFUSED_S, REST_S, beat_ns


def work(
    client: Client,
    orders: Orders,
    out: Outbox,
    order: dict[str, Any],
    seed: str,
    succession: Succession,
    stops: str | None,
) -> None:
    """Campaign and lead until `until_ns` or `rest`. Each process of the client executes this
    again, with the order that its predecessor has left."""
    succession.working = order
    _Reigns(client, orders, out, order, Random(seed), stops).run()
    succession.working = None
    out.answer("idle")


class _Reigns:
    def __init__(
        self,
        client: Client,
        orders: Orders,
        out: Outbox,
        order: dict[str, Any],
        random: Random,
        stops: str | None,
    ) -> None:
        self._client, self._orders, self._out = client, orders, out
        self._order, self._random, self._stops = order, random, stops
        self._settings = msgspec.convert(order["settings"], Settings)
        self._lock, self._resource = self._settings.pairs()[0]
        self._beat_ns = beat_ns(self._settings.ttl_ns)

    def run(self) -> None:
        self._client.take_jobs()
        while not self._over(REST_S):
            value = {"lock": self._lock, "ttl": self._settings.ttl_ns}
            type, answer = self._client.apply("acquire", value)
            if type == "ok":
                self._reign(answer["hold"])
            else:
                self._over(REFUSED_S)
                self._client.leave()

    def _over(self, wait_s: float) -> bool:
        """Wait for an order to end the work; return whether it has ended. A successor sees it in
        the order that it inherits."""
        self._out.flush()
        left_s = (self._order["until_ns"] - self._out.now()) / 1e9
        if left_s > 0 and self._orders.take(min(wait_s, left_s)) is not None:
            self._order["until_ns"] = 0
        return self._out.now() >= int(self._order["until_ns"])

    def _reign(self, hold: str) -> None:
        """Work until the end of the reign; the process may end with it."""
        client = self._client
        until = self._out.now() + int(self._random.uniform(*self._settings.hold_ms) * 1e6)
        if self._settings.calm_ns is not None:
            until = min(until, max(self._settings.calm_ns, self._out.now() + self._beat_ns))
        jobs = client.elector.jobs
        while client.leads(hold):
            if jobs is None:
                self._beat(hold)
            wait_ns = min(self._beat_ns, max(0, until - self._out.now()))
            if jobs is not None:
                self._job(hold, jobs, wait_ns / 1e9)
                wait_ns = 0
            if self._over(wait_ns / 1e9) or self._out.now() >= until:
                self._step_down(hold, jobs)
                return
        if self._stops != CALLBACK:
            client.leave()

    def _beat(self, hold: str, **more: Any) -> None:
        type, read = self._client.apply("read", {"resource": self._resource, "hold": hold})
        if type == "ok" and self._client.leads(hold):
            value = {"resource": self._resource, "version": read["version"], "hold": hold}
            self._client.apply("write", value | more)

    def _job(self, hold: str, jobs: Jobs, wait_s: float) -> None:
        """Do the next job, if one is sent in time."""
        self._out.flush()
        job = jobs.take(wait_s)
        if job is None:
            return
        if job.point:
            self._client.reach(job.point)
        else:
            self._beat(hold, jobs=list(job.names))
            self._out.flush()
        job.ended.set()

    def _step_down(self, hold: str, jobs: Jobs | None) -> None:
        if not self._client.resigns:
            self._client.leave()
        if jobs is not None:
            self._end_loop(hold, jobs)
        type, _ = self._client.apply("release", {"lock": self._lock, "hold": hold})
        if type != "ok" and self._stops != CALLBACK:
            self._client.leave()

    def _end_loop(self, hold: str, jobs: Jobs) -> None:
        """Ask the leader to resign, and do the jobs that its library sends until it has stopped."""
        elector, until = self._client.elector, self._out.now() + self._settings.ttl_ns
        with suppress(Indeterminate):  # the release tells it
            elector.ask_to_resign()
        while elector.runs and self._client.leads(hold) and self._out.now() < until:
            self._job(hold, jobs, self._beat_ns / 1e9)
