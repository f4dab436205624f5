"""Carries out a scenario's steps on the real cluster."""

from __future__ import annotations

import time
from typing import Any

from fencepost.harness.execute.running import Running
from fencepost.nemesis.nemesis import Fault
from fencepost.workloads.scenarios.scenario import (
    Begin,
    Do,
    Finish,
    Heal,
    Inject,
    LeaseOver,
    NoteTime,
    Pass,
    Reach,
    Scenario,
    Step,
    SyncDue,
    Timed,
    TtlByClock,
    TtlOver,
)

LOCK, RESOURCE = "orders", "account"

# Time limits in s of a single op, and of a repeated one, before the schedule has failed. A delayed
# write arrives when TCP sends it again, and TCP doubles its wait after each try. A lock that
# retries with a lease of eight seconds after timeouts takes half a minute.
_OP_S = 60.0
_AGAIN_S = 20.0
_POINT_S = 10.0
# How much longer than the client's lease a server's key may live: Redlock's clock drift.
_MARGIN_NS = 100_000_000
# The interval of polling a clock that may jump.
_LOOK_S = 0.5


_ALSO = {"any": ("ok", "fail"), "failing": ("fail", "info")}


NOT_CARRIED_OUT = "The schedule was not carried out"


class NotAsScheduled(Exception):
    """A step did not end as in the scenario, so the run was not that scenario."""


class Stage:
    """One scenario in one run."""

    def __init__(self, scenario: Scenario, running: Running) -> None:
        self._scenario = scenario
        self._site = running.site
        self._director = running.director
        self._recorder = running.recorder
        self._progress = running.say
        self._holds: dict[str, dict[str, Any]] = {}
        self._read: dict[str, int] = {}
        self._begun: dict[str, str] = {}
        self._noted: dict[str, float] = {}
        # The failpoint of each client in its latest op.
        self._stops: dict[str, list[str]] = {}
        # The largest delay of timed steps, compared with the run that they come from.
        self._late_s = float("-inf")

    def perform(self) -> None:
        """Carry out all steps in order, then recover, even if a step failed.

        Raises:
            NotAsScheduled: a step did not end as expected; none after it was carried out.
        """
        try:
            self._play()
        except NotAsScheduled:
            self._recover()
            raise
        self._recover()

    def _play(self) -> None:
        for number, step in enumerate(self._scenario.steps, 1):
            self._progress(step.describe())
            try:
                self._step(step)
            except NotAsScheduled as error:
                raise NotAsScheduled(f"step {number}, {step.describe()!r}: {error}") from error

    def _recover(self) -> None:
        """Heal everything, then acquire the lock: the history shows whether it is granted."""
        self._progress("Healing, then acquiring the lock.")
        for client, stops in self._stops.items():
            for stop in stops:  # the client would not wait for it any more
                self._site.client(client).disarm(stop)
        self._director.heal_faults()
        for client, f in self._begun.items():
            self._completed(client, f, self._site.client(client).finish(_OP_S))
        self._begun = {}
        bound_s = self._scenario.ttl_ms / 1000 + 5.5
        client = self._site.clients[-1]
        if self._attempt(client, "acquire", "ok", bound_s) == "ok":
            self._attempt(client, "release", "any", 0)

    def _step(self, step: Step) -> None:
        match step:
            case Timed(inner, at_s, waits, lasts_s):
                if waits:
                    time.sleep(max(0.0, self._late_s + at_s - time.monotonic()))
                self._step(inner)
                self._late_s = max(self._late_s, time.monotonic() - at_s - lasts_s)
            case Pass(seconds):
                time.sleep(seconds)
            case Reach(client, point):
                self._reached(client, point)
            case Do(client, f, expect, again):
                self._attempt(client, f, expect, _AGAIN_S if again else 0, strict=True)
            case Begin(client, f, point, stops):
                self._begin(client, f, point, stops)
            case Finish(client, expect):
                done = self._site.client(client).finish(_OP_S)
                self._check(self._completed(client, self._begun.pop(client), done), expect)
            case Inject(name, family, targets, arguments):
                if family == "kill":
                    for node in targets:
                        self._begun.pop(node, None)
                self._inject(Fault(name, family, list(targets), dict(arguments)))
            case Heal(name):
                if not self._director.heal(name).proved:
                    raise NotAsScheduled("nothing proves that the fault has ended")
            case LeaseOver(client):
                self._sleep_until(self._holds[client]["deadline"] + _MARGIN_NS)
            case TtlOver():
                ttl_ns = self._scenario.ttl_ms * 1_000_000
                self._sleep_until(self._recorder.now() + ttl_ns + 500_000_000)
            case NoteTime(client):
                self._noted[client] = self._wall_s(client)
            case TtlByClock(client):
                self._sleep_by_clock(client)
            case SyncDue():
                time.sleep(2.0 - time.time() % 1.0)

    def _inject(self, fault: Fault) -> None:
        receipt = self._director.inject(fault)
        if not receipt.proved:
            raise NotAsScheduled(f"the fault has no receipt: {receipt.how}")

    def _begin(self, client: str, f: str, point: str | None, stops: tuple[str, ...]) -> None:
        worker = self._site.client(client)
        self._stops[client] = [*([] if point is None else [point]), *stops]
        for stop in self._stops[client]:
            worker.arm(stop)
        worker.begin(f, self._value(client, f))
        self._begun[client] = f
        if not worker.wait_begun(_POINT_S):
            raise NotAsScheduled(f"{client} did not begin within {_POINT_S:.0f} s")
        if point is not None:
            self._reached(client, point)

    def _reached(self, client: str, point: str) -> None:
        worker = self._site.client(client)
        if worker.wait_failpoint(point, _POINT_S):
            return
        doing = worker.describe()
        raise NotAsScheduled(f"{client} did not reach {point} within {_POINT_S:.0f} s: {doing}")

    def _attempt(
        self, client: str, f: str, expect: str, again_s: float, strict: bool = False
    ) -> str:
        end = time.monotonic() + again_s
        while True:
            done = self._site.client(client).do(f, self._value(client, f), _OP_S)
            type = self._completed(client, f, done)
            if type == expect or expect == "any" or time.monotonic() >= end:
                break
            time.sleep(0.05)
        if strict:
            self._check(type, expect)
        return type

    @staticmethod
    def _check(type: str, expect: str) -> None:
        if type != expect and type not in _ALSO.get(expect, ()):
            raise NotAsScheduled(f"it completed as {type}, but the schedule has {expect}")

    def _completed(self, client: str, f: str, done: dict[str, Any] | None) -> str:
        if done is None:
            raise NotAsScheduled(f"{client}'s {f} did not complete within {_OP_S:.0f} s")
        if done["type"] == "ok":
            if f == "acquire":
                self._holds[client] = done["value"]
            elif f == "read":
                self._read[client] = done["value"]["version"]
        return str(done["type"])

    def _value(self, client: str, f: str) -> dict[str, Any]:
        hold = self._holds.get(client, {}).get("hold")
        ttl = self._scenario.ttl_ms * 1_000_000
        values: dict[str, dict[str, Any]] = {
            "acquire": {"lock": LOCK, "ttl": ttl},
            "extend": {"lock": LOCK, "hold": hold, "ttl": ttl},
            "release": {"lock": LOCK, "hold": hold},
            "read": {"resource": RESOURCE, "hold": hold},
            "write": {"resource": RESOURCE, "version": self._read.get(client), "hold": hold},
        }
        return values[f]

    def _wall_s(self, client: str) -> float:
        """Return the client's wall clock, relative to any fixed moment."""
        low_s, high_s = self._site.client(client).look_at_clock("wall", {})
        return time.monotonic() + (low_s + high_s) / 2

    def _sleep_by_clock(self, client: str) -> None:
        if client not in self._noted:
            raise NotAsScheduled(f"{client} has not noted a time before")
        due_s = self._noted[client] + self._scenario.ttl_ms / 1000
        while (left_s := due_s - self._wall_s(client)) > 0:
            time.sleep(min(left_s, _LOOK_S))

    def _sleep_until(self, time_ns: int) -> None:
        time.sleep(max(0.0, (time_ns - self._recorder.now()) / 1e9))
