"""Checks the arguments of Redis' commands: numbers, key types, and Redis' errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import isinf, isnan, nan
from typing import Any

from fencepost.hunt.models.redis.store import Store
from fencepost.hunt.sim.unknown import Unknown

WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
NOT_INTEGER = "ERR value is not an integer or out of range"
SYNTAX = "ERR syntax error"
LARGEST = 2**63 - 1
_DATABASES, _HALF = 16, 2**31
_FLOAT = re.compile(
    r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|inf(?:inity)?)\Z", re.IGNORECASE | re.ASCII
)
_HEX = re.compile(
    r"[-+]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[-+]?\d+)?\Z", re.IGNORECASE | re.ASCII
)

Arguments = Sequence[str]
Command = Callable[[Store, Arguments], Any]


class CommandError(Exception):
    """A command is refused, with Redis' message."""


def integer(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise CommandError(NOT_INTEGER) from None
    if str(number) != text or not -LARGEST - 1 <= number <= LARGEST:
        raise CommandError(NOT_INTEGER)
    return number


def database(text: str) -> None:
    """Check the number of a database. Raises Unknown for all but the only one that is modelled."""
    number = integer(text)
    if not -_HALF <= number < _HALF:
        raise CommandError(
            f"ERR value is out of range, value must between {-_HALF} and {_HALF - 1}"
        )
    if not 0 <= number < _DATABASES:
        raise CommandError("ERR DB index is out of range")
    if number:
        raise Unknown(f"the model of Redis has one database, number 0, and no {number}")


def strict_number(text: str) -> float:
    """Return a score. Raises CommandError if it is none, or outside of the range of doubles."""
    found = _number(text)
    digits = text.lower().partition("e")[0]
    lost = isinf(found) and "n" not in digits.lower()
    if isnan(found) or lost or (found == 0 and any(digit in digits for digit in "123456789")):
        raise CommandError("ERR value is not a valid float")
    return found


def lenient_number(text: str) -> float:
    """Return a bound of scores, as C's strtod reads it. Raises CommandError if it is none."""
    found = _number(text.lstrip(" \t\n\v\f\r")) if text else 0.0
    if isnan(found):
        raise CommandError("ERR min or max is not a float")
    return found


def _number(text: str) -> float:
    """Return the number; NaN: it is none."""
    if _FLOAT.match(text):
        return float(text)
    try:
        return float.fromhex(text) if _HEX.match(text) else nan
    except OverflowError:
        return nan


def value_of(store: Store, key: str, kind: type) -> Any:
    """Return the value of a key, or None if it does not exist. Raises CommandError for another
    type."""
    value = store.look(key)
    if value is not None and type(value) is not kind:
        raise CommandError(WRONG_TYPE)
    return value


def made(store: Store, key: str, kind: type) -> Any:
    """Return the value of a key; create an empty one if it does not exist."""
    value = value_of(store, key, kind)
    if value is None:
        value = kind()
        store.put(key, value)
    return value


def between(values: list[str], first: int, last: int) -> list[str]:
    """Return the values from one index to another, both inclusive; -1 is the last index."""
    start = max(0, first + len(values) if first < 0 else first)
    stop = last + len(values) if last < 0 else last
    return values[start : stop + 1] if stop >= 0 else []


def remove(store: Store, args: Arguments, kind: type, event: str) -> int:
    """Remove fields of a hash, or members of a set; return how many existed. `event`: its name."""
    key, *names = args
    found = value_of(store, key, kind)
    if found is None:
        return 0
    gone = 0
    for name in names:
        if name in found:
            del found[name]
            gone += 1
    if gone:
        store.signal(event[0], event, key)
    if not found:
        emptied(store, key)
    return gone


def emptied(store: Store, key: str) -> None:
    """Delete a key whose last element is gone."""
    store.delete(key)
    store.signal("g", "del", key)


def check_count(name: str, args: Sequence[Any], least: int, most: int | None) -> None:
    """Raise CommandError if a command has too few or too many arguments."""
    if len(args) < least or (most is not None and len(args) > most):
        raise CommandError(f"ERR wrong number of arguments for '{name.lower()}' command")
