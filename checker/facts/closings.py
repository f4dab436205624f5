"""When a client had certainly closed its connections, or was dead: it sends nothing after that.

A library may keep a request that it could not send, and send it once it is connected again. It does
not if its client has closed it, or has died.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

from fencepost.checker.facts.ends import FOREVER, kills
from fencepost.checker.history.history import Call, History, Op


class Closings:
    """The closes and proved deaths of a history's processes."""

    def __init__(self, history: History) -> None:
        self._dead = {process: dead for process, (_, dead) in kills(history).items()}
        self._begun: dict[int | str, list[Op]] = {}
        self._ended: dict[int | str, list[int]] = {}
        for call in history.calls():
            if call.begin.f == "close" and call.type == "ok" and call.end is not None:
                self._begun.setdefault(call.begin.process, []).append(call.begin)
                self._ended.setdefault(call.begin.process, []).append(call.end.time)

    def after(self, call: Call) -> float:
        """Return when the client of a call had closed, of the closes that were answered ok and
        begun after the call, or was seen dead; FOREVER if neither was seen."""
        process = call.begin.process
        place = bisect_left(self._begun.get(process, ()), call.begin.index, key=attrgetter("index"))
        ended = self._ended.get(process, [])[place : place + 1]
        return min([self._dead.get(process, FOREVER), *ended])
