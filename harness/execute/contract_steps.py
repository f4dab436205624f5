"""The steps of `fencepost check`, of locks and of electors: each appends its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fencepost.checker.verdict import Valid
from fencepost.harness.execute.contract_turns import (
    RESOURCE,
    Mistaken,
    NotFurther,
    Turns,
    outcome,
)
from fencepost.harness.execute.running import Running


@dataclass(frozen=True)
class Found:
    """The result of a step: its claim (`what`), whether it holds, and what happened or must be
    changed."""

    valid: Valid
    what: str
    how: str


class Steps:
    """The steps, in order. `found` has the results so far."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._turns = Turns(running)
        self._ttl_s = running.spec.ttl_ms / 1000
        self.found: list[Found] = []

    def _steps(self) -> Sequence[tuple[str, Callable[[], None]]]:
        """Return the steps with their names."""
        raise NotImplementedError

    def play(self) -> None:
        """Run every step that can be run."""
        for words, step in self._steps():
            self._running.say(f"checking {words}")
            try:
                step()
            except Mistaken as error:
                self._say(False, "the client's answers are valid", str(error))
                return
            except NotFurther as error:
                self._say(False, f"the check continues after {words}", str(error))
                return

    def _say(self, valid: Valid, what: str, how: str) -> None:
        self.found.append(Found(valid, what, how))

    def _must_use(self, client: str, hold: str, who: str) -> None:
        """Let a client read and write under its hold. `who`: its part, as `holder`."""
        for f, more in (("read", {}), ("write", {"version": 0})):
            done = self._turns.do(client, f, {"resource": RESOURCE, "hold": hold, **more})
            if done["type"] != "ok":
                self._say(False, f"its {who} can {f} the resource", outcome(done))

    def _must_close(self, client: str) -> None:
        what = "it closes when its input ends"
        begun = time.monotonic()
        self._turns.worker(client).close()
        took_s = time.monotonic() - begun
        last = [op for op in self._turns.ops() if op.f == "close" and op.node == client][-1:]
        if not last:
            self._say(False, what, "it wrote no `close` (docs/protocol.md, close)")
        elif last[0].type == "ok":
            self._say(True, what, f"in {took_s:.1f} s")
        else:
            error = (last[0].error or ("", "it took too long"))[1]
            self._say(False, what, f"close did not return: {error}")
