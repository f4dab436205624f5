"""Parses ranges: of lengths of time, 0..20ms, 0.9ttl..1.2ttl, 1s; of clients, 2..4, 1..all.

A length of time is absolute or a multiple of the TTL, so that one setting fits leases of any
length. A single value is a range of one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from fencepost import times

_TTLS = re.compile(r"\s*(\d+(?:\.\d+)?|)\s*ttl\s*")
_LONGEST_S, _MOST_TTLS = 3600.0, 100.0
ALL = "all"
Number = TypeVar("Number", int, float)


def lengths(text: str, ttl_ms: float) -> tuple[float, float]:
    """Return the shortest and the longest length of time, in ms.

    Raises:
        ValueError: it cannot be read, is out of range, or is empty.
    """
    return _ends(text, lambda one: _length(one, ttl_ms), "length")


def _length(text: str, ttl_ms: float) -> float:
    if match := _TTLS.fullmatch(text):
        many = float(match[1] or 1)
        if many > _MOST_TTLS:
            raise ValueError(f"{text!r} is out of range (up to {_MOST_TTLS:g}ttl)")
        return many * ttl_ms
    if text.strip() == "0":
        return 0.0
    try:
        found_s = times.seconds(text)
    except ValueError as error:
        raise ValueError(
            f"{text!r} is not a length of time; write for example 20ms, 1.5ttl or 0.9ttl..1.2ttl"
        ) from error
    if found_s > _LONGEST_S:
        raise ValueError(f"{text!r} is out of range (up to {times.describe(_LONGEST_S)})")
    return found_s * 1000


def clients(text: str, many: int) -> tuple[int, int]:
    """Return the least and the greatest number of clients; `many` is the number available.

    Raises:
        ValueError: it cannot be read, exceeds that number, or is empty.
    """
    return _ends(text, lambda one: _number(one, many), "number")


def _number(text: str, many: int) -> int:
    word = text.strip()
    if word == ALL:
        return many
    if not re.fullmatch(r"\d{1,9}", word):
        raise ValueError(
            f"{text!r} is not a number of clients; write for example 2, 2..4 or 1..all"
        )
    if not 1 <= int(word) <= many:
        raise ValueError(f"{text!r} is out of range: there are {many} clients (1 to {many})")
    return int(word)


def _ends(text: str, read: Callable[[str], Number], noun: str) -> tuple[Number, Number]:
    first, dots, last = text.partition("..")
    low, high = read(first), read(last if dots else first)
    if low > high:
        raise ValueError(f"{text!r} is empty: its first {noun} is above its second")
    return low, high
