"""Drives an elector that is a program: campaign, work while it leads, and step down.

The same work as that of fencepost's own client (workloads/client/reigns.py), an op at a time. The
program itself says when a reign has ended: it writes `lost`, or answers a beat with `stopped`.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from fencepost.harness.clients.driver import Turns, Work, sections
from fencepost.workloads.client.critical_section import Settings
from fencepost.workloads.electors.plain import CALLBACK, REFUSED_S, REST_S, beat_ns

STOPPED = "stopped"
"""How a beat ends that the program does not begin, because its leader has stopped."""
_GONE = "info"
"""How an op ends whose process has ended with it."""


def work_of(settings: dict[str, Any], seed: str, stops: str | None, resigns: bool) -> Work:
    """Return the work of a client. `stops`: what ends that of a leader, None for a lock; `resigns`:
    a leader can step down."""
    if stops is None:
        return sections(settings, seed)
    return _Reigns(msgspec.convert(settings, Settings), Random(seed), stops, resigns).work


class _Reigns:
    def __init__(self, settings: Settings, random: Random, stops: str, resigns: bool) -> None:
        self._settings, self._random = settings, random
        self._leaves, self._resigns = stops != CALLBACK, resigns
        self._lock, self._resource = settings.pairs()[0]
        self._beat_ns = beat_ns(settings.ttl_ns)

    def work(self, turns: Turns) -> None:
        while not turns.over(REST_S):
            value = {"lock": self._lock, "ttl": self._settings.ttl_ns}
            type, answer = turns.do("acquire", value)
            if type == "ok":
                self._reign(turns, answer["hold"])
            elif type != _GONE:
                turns.over(REFUSED_S)
                turns.worker.leave()

    def _reign(self, turns: Turns, hold: str) -> None:
        until = turns.now() + int(self._random.uniform(*self._settings.hold_ms) * 1e6)
        if self._settings.calm_ns is not None:
            until = min(until, max(self._settings.calm_ns, turns.now() + self._beat_ns))
        ended = ""
        while not ended and not turns.worker.is_lost(hold):
            ended = self._beat(turns, hold)
            wait_ns = min(self._beat_ns, max(0, until - turns.now()))
            if not ended and (turns.over(wait_ns / 1e9) or turns.now() >= until):
                self._step_down(turns, hold)
                return
        if self._leaves and ended != _GONE:
            turns.worker.leave()

    def _beat(self, turns: Turns, hold: str) -> str:
        """Read and write; return how the reign has ended by that, "" if it has not."""
        type, read = turns.do("read", {"resource": self._resource, "hold": hold})
        if type == "ok":
            value = {"resource": self._resource, "version": read["version"], "hold": hold}
            type, _ = turns.do("write", value)
        return type if type in (STOPPED, _GONE) else ""

    def _step_down(self, turns: Turns, hold: str) -> None:
        if not self._resigns:
            turns.worker.leave()
            return
        type, _ = turns.do("release", {"lock": self._lock, "hold": hold})
        if type == "fail" and self._leaves:
            turns.worker.leave()
