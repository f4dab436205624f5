"""What Redis' commands take and refuse: integers, keys of one type, and errors in Redis' words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from fencepost.hunt.models.redis.store import Store

WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
NOT_INTEGER = "ERR value is not an integer or out of range"
SYNTAX = "ERR syntax error"
LARGEST = 2**63 - 1
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)\Z")

Arguments = Sequence[str]
Command = Callable[[Store, Arguments], Any]


class CommandError(Exception):
    """A command is refused; the text is Redis' own."""


def integer(text: str) -> int:
    if not _INTEGER.match(text) or text == "-0" or not -LARGEST - 1 <= int(text) <= LARGEST:
        raise CommandError(NOT_INTEGER)
    return int(text)


def value_of(store: Store, key: str, kind: type) -> Any:
    """The value of a key, if it is of this type; None if there is no such key."""
    value = store.look(key)
    if value is not None and type(value) is not kind:
        raise CommandError(WRONG_TYPE)
    return value


def made(store: Store, key: str, kind: type) -> Any:
    """The value of a key, which is made, empty, if it is not there."""
    value = value_of(store, key, kind)
    if value is None:
        value = kind()
        store.put(key, value)
    return value


def between(values: list[str], first: int, last: int) -> list[str]:
    """Those from one place to another, both included; -1 is the last place."""
    start = max(0, first + len(values) if first < 0 else first)
    stop = last + len(values) if last < 0 else last
    return values[start : stop + 1] if stop >= 0 else []
