"""The random numbers of Redis' scripts, which follow from a state that begins as in a new server.

Redis has its own generator (rand.c), so that scripts have the same numbers everywhere.
"""

from __future__ import annotations

_FACTOR, _MORE, _MASK = 0x5DEECE66D, 0xB, 2**48 - 1
_MOST = 2**31 - 1


class Chance:
    """The generator of one server, since its start."""

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state = 0x1234ABCD330E

    def seed(self, number: int) -> None:
        self._state = (number & 0xFFFFFFFF) << 16 | 0x330E

    def fraction(self) -> float:
        """Return a number from 0 to below 1."""
        self._state = (self._state * _FACTOR + _MORE) & _MASK
        return (self._state >> 17) % _MOST / _MOST
