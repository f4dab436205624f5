"""Redis' commands for the time at which a key expires, by the server's wall clock."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from fencepost.hunt.models.redis.arguments import (
    LARGEST,
    Arguments,
    Command,
    CommandError,
    integer,
)
from fencepost.hunt.models.redis.store import Store

_NONE: Set[str] = frozenset()


def when(command: str, now_ms: int, word: str, text: str) -> int:
    """Return the time (ms of the wall clock) that an option such as EX and its number mean."""
    number, unit = integer(text), 1000 if word.startswith("EX") else 1
    absolute = word.endswith("AT")
    if number <= 0 or number > (LARGEST - (0 if absolute else now_ms)) // unit:
        raise CommandError(f"ERR invalid expire time in '{command}' command")
    return number * unit + (0 if absolute else now_ms)


def _expiry(name: str, unit: int, absolute: bool) -> Command:
    def expire(store: Store, args: Arguments) -> Any:
        key, number, *words = args
        options = _checked_options(words) if words else _NONE
        ms, base = integer(number) * unit, 0 if absolute else store.now_ms
        if not -LARGEST - 1 <= ms <= LARGEST - base:
            raise CommandError(f"ERR invalid expire time in '{name}' command")
        if store.look(key) is None:
            return 0
        if options and not _permits(options, store.expires.get(key), ms + base):
            return 0
        expire_at(store, key, ms + base)
        return 1

    return expire


def _checked_options(words: list[str]) -> Set[str]:
    """Return the options of EXPIRE in upper case."""
    for word in words:
        if word.upper() not in ("NX", "XX", "GT", "LT"):
            raise CommandError(f"ERR Unsupported option {word}")
    options = {word.upper() for word in words}
    if "NX" in options and len(options) > 1:
        raise CommandError("ERR NX and XX, GT or LT options at the same time are not compatible")
    if {"GT", "LT"} <= options:
        raise CommandError("ERR GT and LT options at the same time are not compatible")
    return options


def _permits(options: Set[str], now: int | None, new: int) -> bool:
    """Return whether the options of EXPIRE permit to replace one time by another; None: none."""
    return not (
        ("NX" in options and now is not None)
        or ("XX" in options and now is None)
        or ("GT" in options and (now is None or new <= now))
        or ("LT" in options and now is not None and new >= now)
    )


def expire_at(store: Store, key: str, when_ms: int) -> None:
    if when_ms <= store.now_ms and not store.keeps:
        if store.delete(key):
            store.signal("g", "del", key)
    else:
        store.expires[key] = when_ms
        store.signal("g", "expire", key)


def _left(unit: int) -> Command:
    def left(store: Store, args: Arguments) -> Any:
        if store.look(args[0]) is None:
            return -2
        when = store.expires.get(args[0])
        if when is None:
            return -1
        ms = max(0, when - store.now_ms)
        return ms if unit == 1 else (ms + 500) // unit

    return left


def _persist(store: Store, args: Arguments) -> Any:
    if store.look(args[0]) is None or store.expires.pop(args[0], None) is None:
        return 0
    store.signal("g", "persist", args[0])
    return 1


EXPIRY: dict[str, tuple[Command, int, int | None]] = {
    "EXPIRE": (_expiry("expire", 1000, False), 2, None),
    "PEXPIRE": (_expiry("pexpire", 1, False), 2, None),
    "EXPIREAT": (_expiry("expireat", 1000, True), 2, None),
    "PEXPIREAT": (_expiry("pexpireat", 1, True), 2, None),
    "TTL": (_left(1000), 1, 1),
    "PTTL": (_left(1), 1, 1),
    "PERSIST": (_persist, 1, 1),
}
"""The commands, with their minimum and maximum numbers of arguments (commands.py)."""
