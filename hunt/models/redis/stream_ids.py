"""Reads the IDs of a Redis stream's entries from text (t_stream.c of Redis 7.0)."""

from __future__ import annotations

import re

from fencepost.hunt.models.redis.arguments import CommandError
from fencepost.hunt.models.redis.stream_value import ID, LAST

_INVALID = "ERR Invalid stream ID specified as stream command argument"
_PART = re.compile(r"[0-9]{1,20}\Z", re.ASCII)


def read_id(text: str, missing: int = 0, strict: bool = True) -> ID:
    """Return an ID; `missing`: the second number if it is not given. Raises CommandError."""
    if not strict and text in ("-", "+"):
        return (0, 0) if text == "-" else LAST
    if not is_id(text):
        raise CommandError(_INVALID)
    first, dash, second = text.partition("-")
    return int(first), int(second) if dash else missing


def is_id(text: str) -> bool:
    first, dash, second = text.partition("-")
    parts = [first, second] if dash else [first]
    return all(_PART.match(part) and int(part) < 2**64 for part in parts)


def following(one: ID) -> ID:
    """Return the next ID."""
    return (one[0], one[1] + 1) if one[1] < LAST[1] else (one[0] + 1, 0)


def previous(one: ID) -> ID:
    """Return the ID before."""
    return (one[0], one[1] - 1) if one[1] else (one[0] - 1, LAST[1])


def read_bound(text: str, last: bool) -> ID:
    """Return a bound of a range; "(" excludes the ID itself. Raises CommandError."""
    missing = LAST[1] if last else 0
    if not text.startswith("(") or len(text) == 1:
        return read_id(text, missing, strict=False)
    found = read_id(text[1:], missing)
    if found == ((0, 0) if last else LAST):
        raise CommandError(f"ERR invalid {'end' if last else 'start'} ID for the interval")
    return previous(found) if last else following(found)
