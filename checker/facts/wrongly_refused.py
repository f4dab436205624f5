"""Writes that a resource refused although they had no lower token than any that it can have seen.

A guard that compares tokens in a wrong way, for example as text, keeps the rightful holder from the
resource.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from math import inf
from typing import Any

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.history.accesses import number
from fencepost.checker.history.history import Call, History

_REFUSED = "refused"


class _Sent:
    """The writes of one node to one resource, with the highest token of those sent by a time."""

    def __init__(self, rows: list[tuple[int, int]]) -> None:
        rows.sort()
        self._times = [time for time, _ in rows]
        self._highest = list(accumulate((token for _, token in rows), max))

    def highest(self, until: int) -> float:
        place = bisect_right(self._times, until)
        return self._highest[place - 1] if place else -inf


def wrongly_refused(history: History, clocks: Clocks) -> Iterator[Call]:
    """Yield the refused writes with a token by whose refusal no write with a higher token can have
    been sent to the resource. The guard knows no locks, so writes under any lock count."""
    written: dict[Any, dict[str | None, list[tuple[int, int]]]] = {}
    refused: list[tuple[Call, int]] = []
    for call in history.calls():
        begin, end = call.begin, call.end
        token = number(begin.value.get("token")) if begin.f == "write" else None
        if token is None:
            continue
        nodes = written.setdefault(begin.value.get("resource"), {})
        nodes.setdefault(begin.node, []).append((begin.time, token))
        if end is not None and call.type == "fail" and end.error and end.error[0] == _REFUSED:
            refused.append((call, token))
    sent = {
        name: {node: _Sent(rows) for node, rows in nodes.items()} for name, nodes in written.items()
    }
    for call, token in refused:
        assert call.end is not None
        end = call.end
        rows = sent[call.begin.value.get("resource")].items()
        if all(mine.highest(end.time + clocks.between(end.node, n)) <= token for n, mine in rows):
            yield call
