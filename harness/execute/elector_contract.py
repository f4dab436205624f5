"""`fencepost check` of an elector: step by step, on a small real cluster, with two candidates.

One candidate must be elected, and no other one while it leads. After its resignation or its death
the other one must lead. While its servers do not answer, its elector must call `stopped`, or its
deadline must pass. Numbers that cannot be safe are named without a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from fencepost.harness.execute.contract_steps import Steps
from fencepost.harness.execute.contract_turns import (
    OP_S,
    Done,
    NotFurther,
    outcome,
)
from fencepost.nemesis.nemesis import Fault
from fencepost.workloads.electors.arithmetic import cannot_be_safe, grace_ms

ONE, TWO = "client-1", "client-2"
_BACK_S = 6.0
_LEASES = 1.5
"""How long another candidate campaigns while one leads."""
_LOOK_S = 0.05


class ElectorTrial(Steps):
    """The steps of an elector."""

    def _steps(self) -> Sequence[tuple[str, Callable[[], None]]]:
        return (
            ("the numbers", self._numbers),
            ("an election", self._elected),
            ("a second candidate", self._alone),
            ("silent servers", self._silent),
            ("a kill", self._killed),
            ("the end", self._closed),
        )

    def _numbers(self) -> None:
        what = "its numbers can be safe"
        spec = self._running.spec
        why, grace = (f(spec.ttl_ms, spec.options) for f in (cannot_be_safe, grace_ms))
        if why:
            self._say(False, what, str(why))
        elif grace is None:
            self._say("unknown", what, "it has no option renew_deadline_ms")
        else:
            self._say(True, what, f"a leader stops {grace:g} ms before its lease ends")

    def _elected(self) -> None:
        done = self._turns.acquired(ONE, self._ttl_s + _BACK_S)
        self._say(done["type"] == "ok", "a candidate is elected", outcome(done))
        if done["type"] != "ok":
            raise NotFurther("no other candidate led, but it was not elected")
        self._must_use(ONE, done["value"]["hold"], "leader")

    def _alone(self) -> None:
        what = "no other candidate leads meanwhile"
        self._turns.begin(TWO)
        other = self._turns.finish(TWO, _LEASES * self._ttl_s)
        if other is not None and other["type"] == "ok":
            self._say(False, what, f"{ONE} leads, and {TWO} was elected: {outcome(other)}")
            raise NotFurther("both candidates lead")
        self._say(True, what, f"it campaigned for {_LEASES * self._ttl_s:g} s")
        self._resigned(waits=other is None)

    def _resigned(self, waits: bool) -> None:
        """Let ONE step down, and TWO lead."""
        what = "another candidate leads after it resigns"
        done = self._turns.release(ONE)
        if done["type"] == "fail" and "resign" in outcome(done):
            self._say("unknown", what, "it has no resign")
        elif done["type"] != "ok":
            self._say(False, "a leader resigns", outcome(done))
        then = self._turns.finish(TWO, self._ttl_s + OP_S) if waits else None
        if then is None or then["type"] != "ok":
            then = self._turns.acquired(TWO, self._ttl_s + _BACK_S)
        if then["type"] != "ok":
            self._say(False, what, outcome(then))
            raise NotFurther("no candidate was elected again")
        if done["type"] == "ok":
            took_s = (then["time"] - done["time"]) / 1e9
            self._say(True, what, f"{max(0.0, took_s):.3f} s after resign had returned")
        self._hold = then["value"]["hold"]

    def _silent(self) -> None:
        what = "a leader that cannot renew stops within its lease"
        running = self._running
        fault = Fault("silence", "pause", list(running.site.servers), {"words": "servers paused"})
        receipt = running.director.inject(fault)
        # To pause them takes a while, in which the leader can still renew.
        begun = running.recorder.now()
        over = begun + int(self._ttl_s * 1e9)
        try:
            while self._leads(running.recorder.now()) and running.recorder.now() < over:
                time.sleep(_LOOK_S)
            stopped = running.recorder.now()
            leads = self._leads(stopped)
        finally:
            running.director.heal("silence")
        if not receipt.proved:
            self._say("unknown", what, f"the servers could not be paused: {receipt.how}")
        elif leads:
            how = (
                f"its servers had not answered for {self._ttl_s:g} s, the whole lease, and it "
                "still led: give requests a timeout, and name a deadline or call stopped"
            )
            self._say(False, what, how)
        else:
            self._say(True, what, f"{(stopped - begun) / 1e9:.3f} s after they fell silent")

    def _leads(self, now: int) -> bool:
        """Return whether TWO still believes: no `lost`, and its last deadline has not passed."""
        deadline: int | None = None
        for op in self._turns.ops():
            if op.value.get("hold") != self._hold:
                continue
            if op.f == "lost":
                return False
            deadline = op.value.get("deadline", deadline)
        return deadline is None or now < deadline

    def _killed(self) -> None:
        what = "it can be killed, and another candidate leads"
        self._turns.drain(TWO)
        self._led(ONE)
        receipt = self._running.director.inject(
            Fault("death", "kill", [ONE], {"words": f"{ONE} killed"})
        )
        self._running.director.heal("death")
        if not receipt.proved:
            self._say(False, what, f"nothing proves that it has ended: {receipt.how}")
            return
        begun = self._running.recorder.now()
        done = self._led(TWO)
        self._say(True, what, f"{(done['time'] - begun) / 1e9:.3f} s after it")

    def _led(self, client: str) -> Done:
        return self._turns.must_acquire(client, 2 * self._ttl_s + _BACK_S)

    def _closed(self) -> None:
        self._must_close(TWO)
