"""The ops that `fencepost check` sends to two clients in turn."""

from __future__ import annotations

import time
from typing import Any

from fencepost.checker.history import history
from fencepost.harness.clients.worker import Worker
from fencepost.harness.execute.running import Running

LOCK, RESOURCE = "orders", "account"
Done = dict[str, Any]
"""The completion of an op."""

OP_S, TURN_S = 30.0, 1.0
"""Time limits in s: for an op; for an acquire that waits for its turn."""
_AGAIN_S = 0.1


class NotFurther(Exception):
    """A step could not be completed, so the steps after it cannot run; the text gives the
    reason."""


class Mistaken(NotFurther):
    """The client violates the protocol; the text gives the violation and the remedy."""


class Turns:
    """The clients of a run, which get one op after another."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.ttl_ns = running.spec.ttl_ms * 1_000_000

    def worker(self, client: str) -> Worker:
        return self._running.site.client(client)

    def do(self, client: str, f: str, value: dict[str, Any]) -> Done:
        """Run one op.

        Raises:
            Mistaken: the client violates the protocol, or ended.
            NotFurther: the op does not return.
        """
        self.worker(client).begin(f, value)
        done = self.finish(client, OP_S)
        if done is None:
            raise NotFurther(f"{f} of {client} had not returned after {OP_S:g} s")
        return done

    def begin(self, client: str) -> None:
        """Send an acquire, and do not wait."""
        self.worker(client).begin("acquire", {"lock": LOCK, "ttl": self.ttl_ns})

    def finish(self, client: str, within_s: float) -> Done | None:
        """Return the completion of the open op; None if it does not come in time."""
        worker = self.worker(client)
        done = worker.finish(within_s)
        if worker.broken:
            raise Mistaken(worker.broken)
        if done is None and worker.gone:
            raise Mistaken(f"{client}: {worker.describe()}")
        return done

    def acquired(self, client: str, within_s: float) -> Done:
        """Retry an acquire until it is granted or the time is up; return its completion."""
        end = time.monotonic() + within_s
        while True:
            done = self.do(client, "acquire", {"lock": LOCK, "ttl": self.ttl_ns})
            if done["type"] == "ok" or time.monotonic() > end:
                return done
            time.sleep(_AGAIN_S)

    def must_acquire(self, client: str, within_s: float) -> Done:
        """Return the grant of `acquired`. Raise NotFurther if it is not granted."""
        done = self.acquired(client, within_s)
        if done["type"] != "ok":
            raise NotFurther(f"the lock was not granted again: acquire answered {outcome(done)}")
        return done

    def tried(self, client: str) -> Done | None:
        """Run one acquire; None if it waits for its turn, and then `drain` ends that."""
        self.begin(client)
        return self.finish(client, TURN_S)

    def drain(self, *clients: str) -> None:
        """Release the holds of these clients, in order; one that waits for its turn is granted
        first."""
        for client in clients:
            worker = self.worker(client)
            if worker.busy:
                worker.finish(self.ttl_ns / 1e9 + OP_S)
            self.release(client)

    def release(self, client: str) -> Done:
        """Release the last hold of a client; one that is already released is refused."""
        return self.do(client, "release", {"lock": LOCK, "hold": self._hold(client)})

    def _hold(self, client: str) -> str:
        for op in reversed(self.ops()):
            if op.node == client and (op.f, op.type) == ("acquire", "ok"):
                return str(op.value["hold"])
        return ""

    def ops(self) -> list[history.Op]:
        """Return the ops recorded so far."""
        return list(history.read(self._running.recorder.path))

    def asked_ns(self, done: Done) -> int:
        """Return when the acquire with this completion was invoked."""
        return next(
            op.time
            for op in reversed(self.ops())
            if (op.process, op.f, op.type) == (done["process"], "acquire", "invoke")
        )


def outcome(done: Done) -> str:
    """Describe a completion."""
    if done["type"] == "ok":
        token = done["value"].get("token")
        return "ok" if token is None else f"ok, token {token}"
    kind, *text = done.get("error") or ("no reason",)
    return f"{done['type']} ({': '.join(map(str, [kind, *text]))})"
