"""Drives a client in another language, which has no generator: one op after another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from fencepost.workloads.client.critical_section import GIVE_UP, CriticalSection, Settings


class Driven(Protocol):
    def begin(self, f: str, value: dict[str, Any]) -> None: ...
    def finish(self, timeout_s: float) -> dict[str, Any] | None: ...
    def give_up(self, asked: dict[str, Any], deadline: int | None) -> dict[str, Any]: ...
    def is_lost(self, hold: str) -> bool: ...
    def leave(self) -> None: ...
    def fail(self, part: str, error: Exception) -> None: ...
    @property
    def gone(self) -> bool: ...


class Gone(Exception):
    """The program has ended, so its work has."""


class Turns:
    """The ops of one client. `now` gives the time since the test's start, in ns."""

    def __init__(self, worker: Driven, until_ns: int, now: Callable[[], int]) -> None:
        self.worker, self.now = worker, now
        self._until_ns = until_ns
        self.rest = threading.Event()

    def over(self, wait_s: float) -> bool:
        """Wait, or until the work has to end; return whether it has to."""
        return self.rest.wait(wait_s) or self.now() >= self._until_ns

    def do(self, f: str, value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Send an op; return how it ended, and its value. Raises Gone."""
        if self.worker.gone:
            raise Gone
        self.worker.begin(f, value)
        while (done := self.worker.finish(1.0)) is None:
            if self.worker.gone:
                raise Gone
        # The harness' own completion of an op has no value.
        return done["type"], value | (done.get("value") or {})


Work = Callable[[Turns], None]


class Driver:
    """Carries out the work of a client in a thread, until `rest` is called."""

    def __init__(self, worker: Driven, work: Work, until_ns: int, now: Callable[[], int]) -> None:
        self._turns = Turns(worker, until_ns, now)
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def rest(self, timeout_s: float) -> bool:
        """End its work once it holds no lock; return False if it does not end in time."""
        self._turns.rest.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._work(self._turns)
        except Gone:
            return
        except Exception as error:  # a defect: without its generator the client would stay silent
            self._turns.worker.fail("generator", error)
            raise


def sections(settings: dict[str, Any], seed: str) -> Work:
    """Return the standard work: critical sections under a lock."""
    section = CriticalSection(msgspec.convert(settings, Settings), seed)

    def work(turns: Turns) -> None:
        step = section.first(turns.now())
        deadline: int | None = None
        while not turns.worker.gone:
            over = turns.over(step.after_s)
            if over and step.f == "acquire":
                return
            if step.f == GIVE_UP:
                type, value = "ok", turns.worker.give_up(step.value, deadline)
            else:
                type, value = turns.do(step.f, step.value)
            if step.f in ("acquire", "extend") and type == "ok":
                deadline = value.get("deadline")
            step = section.next(step.f, type, value, turns.now())

    return work
