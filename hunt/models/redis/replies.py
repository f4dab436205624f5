"""Redis' kinds of replies that are texts for a lock, and that RESP and Lua tell apart.

Other replies are str (a value), int, None, lists, dicts (maps), and Refusal (an error).
"""

from __future__ import annotations

from typing import Any


class Status(str):
    """A status such as OK; `str` alone is a value."""

    __slots__ = ()


class Double(str):
    """A floating-point number as RESP2 shows it; RESP3 has a type for it."""

    __slots__ = ()


class Members(list[Any]):
    """The members of a set; RESP3 has a type for it."""

    __slots__ = ()


class Scored(list[Any]):
    """Members and scores in turn; RESP3 returns a list of pairs."""

    __slots__ = ()


class ByName(list[Any]):
    """Pairs of a name and a value; RESP3 returns a map."""

    __slots__ = ()


class NoList(list[Any]):
    """The absence of a list; RESP2 tells it from that of a text."""

    __slots__ = ()


class Verbatim(str):
    """A text; RESP3 has a type for it."""

    __slots__ = ()


class Push(list[Any]):
    """A message that RESP3 tells apart from replies."""

    __slots__ = ()


class Several(list[Any]):
    """The replies to one command that has several."""

    __slots__ = ()


class Transaction(list[bytes]):
    """The encoded replies of the commands of a transaction."""

    __slots__ = ()


OK, PONG, QUEUED = Status("OK"), Status("PONG"), Status("QUEUED")


def double(number: float) -> Double:
    return Double(f"{number:.17g}")
