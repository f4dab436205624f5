"""`fencepost check`: check step by step, on a small real cluster, that a client keeps the contract.

Two clients take turns. Each step checks one thing that checkers rely on: that a free lock is
granted and a held one refused, that a release and a lease's end free it, that a certain refusal is
certain, that the client can be killed, and closes. A failed step is a sentence that says what to
change. If a step cannot be completed, the steps that depend on it are skipped, and the report says
so.

This does not test the lock: faults at bad moments, and many clients, come with `fencepost test`. It
is quick, so that a client's mistake does not have to be searched in a history of thousands of ops.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise

from fencepost.harness.execute.contract_steps import Steps
from fencepost.harness.execute.contract_turns import (
    OP_S,
    Done,
    NotFurther,
    outcome,
)
from fencepost.harness.execute.running import Running
from fencepost.nemesis.nemesis import Fault, Receipt

ONE, TWO = "client-1", "client-2"

# Time limits in s: for a lock to come back after its lease; for an acquire at servers that do not
# answer; and how long servers are delayed, which is less than common timeouts.
_BACK_S, _HANG_S, _HELD_UP_S = 6.0, 20.0, 0.2
_MARGIN_S = 0.3
# A client reads its clock just after its event was made; one that reads it after the answer is late
# by the whole delay of the servers.
_CLOCK_S = 0.1


class Trial(Steps):
    """The steps of a lock."""

    def __init__(self, running: Running) -> None:
        super().__init__(running)
        self._leased = running.spec.lock_type.ends_with == "lease"

    def _steps(self) -> Sequence[tuple[str, Callable[[], None]]]:
        return (
            ("a free lock", self._free),
            ("a held lock, and its release", self._held),
            ("an extension", self._extended),
            ("the end of a lease", self._lease_over),
            ("a slow server", self._slow),
            ("a server that does not answer", self._unanswered),
            ("a kill", self._killed),
            ("tokens", self._rising),
            ("the end", self._closed),
        )

    # The steps.

    def _free(self) -> None:
        what = "a free lock is granted"
        done = self._turns.acquired(ONE, _BACK_S)
        self._say(done["type"] == "ok", what, outcome(done))
        if done["type"] != "ok":
            raise NotFurther("no client held the lock, but it was not granted")
        self._must_use(ONE, done["value"]["hold"], "holder")

    def _held(self) -> None:
        what = "a held lock is refused, for certain"
        waiting = self._turns.tried(TWO)
        if waiting is None:
            self._say(True, what, "acquire waits for its turn")
        elif waiting["type"] == "ok":
            self._say(False, what, f"{ONE} held it, and {TWO} was answered {outcome(waiting)}")
            raise NotFurther("both clients hold the lock")
        elif waiting["type"] == "info":
            how = (
                f"{outcome(waiting)}: that says that it may have been granted. If the server "
                "refused, return False or raise fencepost.Failed"
            )
            self._say(False, what, how)
        else:
            self._say(True, what, outcome(waiting))
        self._released(waits=waiting is None)

    def _released(self, waits: bool) -> None:
        done = self._turns.release(ONE)
        self._say(done["type"] == "ok", "a held lock is released", outcome(done))
        what = "a released lock is granted to another"
        then = self._turns.finish(TWO, _BACK_S) if waits else None
        if then is None and waits:
            raise NotFurther(f"{TWO} waited for it, but had no answer within {_BACK_S:g} s")
        if then is None or then["type"] != "ok":
            then = self._turns.acquired(TWO, self._ttl_s / 4)
        if then["type"] != "ok":
            self._say(False, what, f"{outcome(then)}: it stays held until its lease expires")
            then = self._turns.must_acquire(TWO, self._ttl_s + _BACK_S)
        else:
            self._say(True, what, outcome(then))
        self._turns.release(TWO)

    def _extended(self) -> None:
        what = "an extension keeps the lock"
        if not self._turns.worker(ONE).extends:
            self._say("unknown", what, "it has no extend")
            return
        held = self._turns.must_acquire(ONE, self._ttl_s + _BACK_S)
        first = held["value"]["deadline"]
        asked = {"lock": "orders", "hold": held["value"]["hold"], "ttl": self._turns.ttl_ns}
        time.sleep(self._ttl_s / 2)
        done = self._turns.do(ONE, "extend", asked)
        second = done["value"].get("deadline")
        if done["type"] != "ok":
            self._say(False, what, f"extend of a held lock: {outcome(done)}")
        elif first is None or second is None or not self._leased:
            self._say("unknown", what, f"{outcome(done)}; there is no deadline to compare")
        elif second <= first:
            self._say(False, what, "its deadline is no later than before")
        else:
            self._kept_until(first, what)
            return
        self._turns.release(ONE)

    def _kept_until(self, first: int, what: str) -> None:
        """Check that another client is refused after the first deadline."""
        time.sleep(max(0.0, (first - self._running.recorder.now()) / 1e9 + _MARGIN_S))
        other = self._turns.tried(TWO)
        if other is not None and other["type"] == "ok":
            how = f"{TWO} was granted it when the first lease expired: extend it on the server"
            self._say(False, what, how)
        else:
            self._say(True, what, "another client is refused after the first lease")
        self._turns.drain(ONE, TWO)

    def _lease_over(self) -> None:
        what = "a lease that is not released ends, but not early"
        held = self._turns.must_acquire(ONE, self._ttl_s + _BACK_S)
        deadline = held["value"]["deadline"]
        if not self._leased or deadline is None:
            why = "its grant has no deadline" if self._leased else "a grant ends with its client"
            self._say("unknown", what, why)
            self._turns.release(ONE)
            return
        done = self._turns.acquired(TWO, self._ttl_s + _BACK_S)
        if done["type"] != "ok":
            how = f"{outcome(done)}, {_BACK_S:g} s after it: give the lock a TTL on the server"
            self._say(False, what, how)
            raise NotFurther("the lock did not come back")
        after_s = (done["time"] - deadline) / 1e9
        how = (
            f"another client was granted it {abs(after_s):.3f} s "
            f"{'after' if after_s >= 0 else 'before'}"
        )
        hint = "" if after_s >= 0 else ": the server's TTL is shorter than the client's lease"
        self._say(after_s >= 0, what, f"{how} its deadline{hint}")
        self._late_release()

    def _late_release(self) -> None:
        """Release by ONE, which has lost the lock to TWO."""
        what = "a late release does not end another's hold"
        late = self._turns.release(ONE)
        thief = self._turns.tried(ONE)
        if thief is not None and thief["type"] == "ok":
            how = (
                f"{ONE} released a lock that it had lost ({outcome(late)}), and was granted it "
                f"again while {TWO} held it: release only your own hold, identified by a value "
                "that the server compares before it deletes"
            )
            self._say(False, what, how)
        else:
            self._say(True, what, f"it was answered {outcome(late)}")
        self._turns.drain(TWO, ONE)

    def _slow(self) -> None:
        what = "its deadline is no later than its lease"
        self._pause()
        self._turns.begin(ONE)
        time.sleep(_HELD_UP_S)
        self._running.director.heal("silence")
        done = self._turns.finish(ONE, OP_S)
        if done is None or done["type"] != "ok":
            done = self._turns.must_acquire(ONE, self._ttl_s + _BACK_S)
        deadline = done["value"]["deadline"]
        late_s = (deadline - self._turns.asked_ns(done)) / 1e9 - self._ttl_s if deadline else 0.0
        if deadline is None:
            how = "it has none: two clients that hold the lock then count against the service"
            self._say("unknown", what, how)
        elif late_s > _CLOCK_S:
            took_s = (done["time"] - self._turns.asked_ns(done)) / 1e9
            how = (
                f"acquire took {took_s:.3f} s, and the deadline is {late_s:.3f} s later than its "
                "call plus the TTL; the server may grant the lock to another client before that. "
                "Take the time before the request is sent"
            )
            self._say(False, what, how)
        elif deadline <= done["time"]:
            self._say(
                False,
                what,
                "the lease had expired when acquire answered: no client can use such a hold",
            )
        else:
            self._say(True, what, f"{(deadline - done['time']) / 1e9:.3f} s after the answer")
        self._turns.release(ONE)

    def _unanswered(self) -> None:
        what = "a request without an answer is not reported as certain"
        receipt = self._pause()
        if not receipt.proved:
            self._running.director.heal("silence")
            self._say("unknown", what, f"the servers could not be paused: {receipt.how}")
            return
        self._turns.begin(ONE)
        done = self._turns.finish(ONE, _HANG_S)
        self._running.director.heal("silence")
        if done is None:
            how = (
                f"acquire had not returned after {_HANG_S:g} s from servers that did not answer: "
                "give its requests a timeout, far below the TTL"
            )
            self._say(False, what, how)
            done = self._turns.finish(ONE, OP_S)
        elif done["type"] == "fail":
            self._certain(what, done)
        else:
            hint = ", while no server answered" if done["type"] == "ok" else ""
            self._say(done["type"] == "info", what, f"{outcome(done)}{hint}")
        if done is not None and done["type"] == "ok":
            self._turns.release(ONE)

    def _certain(self, what: str, done: Done) -> None:
        """Check that the lock is free after an acquire that was reported as a certain refusal."""
        time.sleep(_MARGIN_S)
        other = self._turns.tried(TWO)
        if other is not None and other["type"] == "ok":
            self._say(True, what, f"{outcome(done)}, and the lock was free")
            self._turns.release(TWO)
            return
        how = (
            f"{outcome(done)} means a certain refusal, but the lock is taken now, and no other "
            "client has asked for it. Raise the timeout of a request that was sent; answer False "
            "only if the server refused"
        )
        self._say(False, what, how)
        self._turns.drain(TWO)

    def _killed(self) -> None:
        what = "it can be killed, and the lock is granted again"
        self._turns.must_acquire(ONE, self._ttl_s + _BACK_S)
        receipt = self._inject("death", "kill", [ONE])
        self._running.director.heal("death")
        if not receipt.proved:
            self._say(False, what, f"nothing proves that it has ended: {receipt.how}")
            return
        done = self._turns.acquired(TWO, self._ttl_s + _BACK_S)
        if done["type"] == "ok":
            self._say(True, what, "killed, restarted, and granted to another client")
            self._turns.release(TWO)
        else:
            how = f"{outcome(done)}, {_BACK_S:g} s after the lease of the client that was killed"
            self._say(False, what, how)

    def _rising(self) -> None:
        what = "tokens rise"
        granted = [op for op in self._turns.ops() if (op.f, op.type) == ("acquire", "ok")]
        tokens = [op.value["token"] for op in granted]
        known = [token for token in tokens if token is not None]
        if not known:
            self._say("unknown", what, "it has none: no guard can refuse a late write")
            return
        rises = known == tokens and all(a < b for a, b in pairwise(known))
        hint = "" if rises else ": every grant needs one that is higher than all earlier ones"
        self._say(rises, what, f"{', '.join(map(str, tokens))}{hint}")

    def _closed(self) -> None:
        self._must_close(ONE)

    def _pause(self) -> Receipt:
        return self._inject("silence", "pause", list(self._running.site.servers))

    def _inject(self, name: str, family: str, targets: list[str]) -> Receipt:
        words = {"pause": "paused", "kill": "killed"}[family]
        arguments = {"words": f"{', '.join(targets)} {words}"}
        return self._running.director.inject(Fault(name, family, targets, arguments))
