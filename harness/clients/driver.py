"""Runs the generator for a client in another language, which has no generator."""

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
    def fail(self, part: str, error: Exception) -> None: ...
    @property
    def gone(self) -> bool: ...


class Driver:
    """Sends one op after another and waits for each, in a thread, until `rest` is called."""

    def __init__(
        self,
        worker: Driven,
        settings: dict[str, Any],
        seed: str,
        until_ns: int,
        now: Callable[[], int],
    ) -> None:
        self._worker = worker
        self._section = CriticalSection(msgspec.convert(settings, Settings), seed)
        self._until_ns = until_ns
        self._now = now
        self._rest = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def rest(self, timeout_s: float) -> bool:
        """End its work once it holds no lock; return False if it does not end in time."""
        self._rest.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:  # a defect: without its generator the client would stay silent
            self._worker.fail("generator", error)
            raise

    def _work(self) -> None:
        step = self._section.first(self._now())
        deadline: int | None = None
        while not self._worker.gone:
            over = self._rest.wait(step.after_s) or self._now() >= self._until_ns
            if over and step.f == "acquire":
                return
            if step.f == GIVE_UP:
                value = self._worker.give_up(step.value, deadline)
                step = self._section.next(step.f, "ok", value, self._now())
                continue
            self._worker.begin(step.f, step.value)
            while (done := self._worker.finish(1.0)) is None:
                if self._worker.gone:
                    return
            # The harness' own completion of an op has no value.
            value = step.value | (done.get("value") or {})
            if step.f in ("acquire", "extend") and done["type"] == "ok":
                deadline = value.get("deadline")
            step = self._section.next(step.f, done["type"], value, self._now())
