"""The write with the highest token so far, where holds of one chain are not compared.

A process that has the lock may be granted it again, with a higher token (second_grants.py). Its
writes under the outer hold are then not late. Two writes suffice: one of them is of another chain
than any given write.
"""

from __future__ import annotations

from itertools import islice
from operator import itemgetter
from typing import Generic, TypeVar

_Write = TypeVar("_Write")
_TOKEN = itemgetter(0)


class Highest(Generic[_Write]):
    """Writes by their tokens and by the number of the chain of their hold; None for no chain."""

    def __init__(self) -> None:
        # The highest, and the highest of those that are of another chain.
        self._best: list[tuple[int, int | None, _Write]] = []

    def add(self, token: int, chain: int | None, write: _Write) -> None:
        if len(self._best) == 2 and token <= self._best[1][0]:
            return
        rows = sorted([*self._best, (token, chain, write)], key=_TOKEN, reverse=True)
        others = (row for row in rows[1:] if row[1] is None or row[1] != rows[0][1])
        self._best = [rows[0], *islice(others, 1)]

    def above(self, token: int, chain: int | None) -> _Write | None:
        """Return a write with a higher token than this, of another chain."""
        for highest, its, write in self._best:
            if highest > token and (chain is None or its != chain):
                return write
        return None
