"""Redis' commands that locks and resources use, with Redis' replies and errors.

A command that is not listed raises Unknown with its name. Replies are those of RESP2, decoded: str,
int, None, or lists of them; status replies such as OK are str as well.
"""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.redis.arguments import (
    LARGEST,
    SYNTAX,
    Arguments,
    Command,
    CommandError,
    between,
    integer,
    made,
    value_of,
)
from fencepost.hunt.models.redis.lists import LISTS
from fencepost.hunt.models.redis.store import Scores, Store
from fencepost.hunt.sim.unknown import Unknown


def _set(store: Store, args: Arguments) -> Any:
    key, value, *words = args
    # An option may be repeated, and the last counts; two options that exclude each other are an
    # error.
    mode, time, number, wants_old = "", "", "", False
    place = 0
    while place < len(words):
        word = words[place].upper()
        if word in ("NX", "XX") and mode in ("", word):
            mode = word
        elif word == "GET":
            wants_old = True
        elif word in ("EX", "PX", "EXAT", "PXAT", "KEEPTTL") and time in ("", word):
            time = word
            if word != "KEEPTTL":
                place += 1
                if place == len(words):
                    raise CommandError(SYNTAX)
                number = words[place]
        else:
            raise CommandError(SYNTAX)
        place += 1
    keep = time == "KEEPTTL"
    expires = _when(store, time, integer(number)) if time and not keep else None
    # GET needs a string; without it any value is replaced.
    old = value_of(store, key, str) if wants_old else store.look(key)
    if (mode == "NX" and old is not None) or (mode == "XX" and old is None):
        return old if wants_old else None
    if keep:
        expires = store.expires.get(key)
    store.put(key, value, expires)
    return old if wants_old else "OK"


def _when(store: Store, word: str, number: int) -> int:
    unit = 1000 if word.startswith("EX") else 1
    if number <= 0 or number > LARGEST // unit:
        raise CommandError("ERR invalid expire time in 'set' command")
    when = number * unit
    return when if word.endswith("AT") else store.now_ms + when


def _setnx(store: Store, args: Arguments) -> Any:
    if store.look(args[0]) is not None:
        return 0
    store.put(args[0], args[1])
    return 1


def _del(store: Store, args: Arguments) -> Any:
    return sum(store.look(key) is not None and store.delete(key) for key in args)


def _add(store: Store, key: str, by: int) -> Any:
    found = value_of(store, key, str)
    old = 0 if found is None else integer(found)
    if not -LARGEST - 1 <= old + by <= LARGEST:
        raise CommandError("ERR increment or decrement would overflow")
    store.values[key] = str(old + by)
    return old + by


def _expiry(name: str, unit: int, absolute: bool) -> Command:
    def expire(store: Store, args: Arguments) -> Any:
        key, number, *words = args
        ms = integer(number) * unit
        if words:
            raise CommandError(f"ERR Unsupported option {words[0]}")
        if not -LARGEST <= ms <= LARGEST - store.now_ms:
            raise CommandError(f"ERR invalid expire time in '{name}' command")
        if store.look(key) is None:
            return 0
        when = ms if absolute else store.now_ms + ms
        if when <= store.now_ms and not store.keeps:
            store.delete(key)
        else:
            store.expires[key] = when
        return 1

    return expire


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


def _time(store: Store, args: Arguments) -> Any:
    """Return the wall clock in seconds, and the microseconds of that second, of whole ms here."""
    return [str(store.now_ms // 1000), str(store.now_ms % 1000 * 1000)]


def _persist(store: Store, args: Arguments) -> Any:
    return int(store.look(args[0]) is not None and store.expires.pop(args[0], None) is not None)


def _hset(store: Store, args: Arguments) -> Any:
    key, *pairs = args
    if len(pairs) % 2:
        raise CommandError("ERR wrong number of arguments for 'hset' command")
    fields = made(store, key, dict)
    before = len(fields)
    fields.update(zip(pairs[::2], pairs[1::2], strict=True))
    return len(fields) - before


def _fields(store: Store, key: str) -> dict[str, str]:
    return value_of(store, key, dict) or {}


def _hmget(store: Store, args: Arguments) -> Any:
    fields = _fields(store, args[0])
    return [fields.get(name) for name in args[1:]]


def _hdel(store: Store, args: Arguments) -> Any:
    fields = value_of(store, args[0], dict)
    if fields is None:
        return 0
    gone = sum(fields.pop(name, None) is not None for name in args[1:])
    if not fields:
        store.delete(args[0])
    return gone


def _hincrby(store: Store, args: Arguments) -> Any:
    key, name, by = args
    amount = integer(by)
    found = value_of(store, key, dict)
    try:
        old = integer(found.get(name, "0")) if found else 0
    except CommandError:
        raise CommandError("ERR hash value is not an integer") from None
    if not -LARGEST - 1 <= old + amount <= LARGEST:
        raise CommandError("ERR increment or decrement would overflow")
    fields = made(store, key, dict)
    fields[name] = str(old + amount)
    return old + amount


def _zadd(store: Store, args: Arguments) -> Any:
    key, *pairs = args
    if len(pairs) % 2:
        raise CommandError(SYNTAX)
    scores = [_score(text) for text in pairs[::2]]
    found = made(store, key, Scores)
    before = len(found)
    found.update(zip(pairs[1::2], scores, strict=True))
    return len(found) - before


def _score(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise CommandError("ERR value is not a valid float") from None


def _zrange(store: Store, args: Arguments) -> Any:
    if len(args) != 3:
        raise CommandError(SYNTAX)
    first, last = integer(args[1]), integer(args[2])
    return between((value_of(store, args[0], Scores) or Scores()).ordered(), first, last)


def _zrem(store: Store, args: Arguments) -> Any:
    found = value_of(store, args[0], Scores)
    if found is None:
        return 0
    gone = sum(found.pop(member, None) is not None for member in args[1:])
    if not found:
        store.delete(args[0])
    return gone


def _zremrangebyscore(store: Store, args: Arguments) -> Any:
    low, below = _bound(args[1])
    high, above = _bound(args[2])
    found = value_of(store, args[0], Scores)
    if found is None:
        return 0
    inside = [
        member
        for member, score in found.items()
        if (low < score or (score == low and not below))
        and (score < high or (score == high and not above))
    ]
    return _zrem(store, [args[0], *inside])


def _bound(text: str) -> tuple[float, bool]:
    """Return a bound of scores, and whether it is exclusive."""
    try:
        return float(text.removeprefix("(")), text.startswith("(")
    except ValueError:
        raise CommandError("ERR min or max is not a float") from None


# The minimum and maximum number of arguments of each; None: no maximum.
_COMMANDS: dict[str, tuple[Command, int, int | None]] = {
    "PING": (lambda store, args: args[0] if args else "PONG", 0, 1),
    "TIME": (_time, 0, 0),
    "GET": (lambda store, args: value_of(store, args[0], str), 1, 1),
    "SET": (_set, 2, None),
    "SETNX": (_setnx, 2, 2),
    "DEL": (_del, 1, None),
    "UNLINK": (_del, 1, None),
    "EXISTS": (lambda store, args: sum(store.look(key) is not None for key in args), 1, None),
    "INCR": (lambda store, args: _add(store, args[0], 1), 1, 1),
    "DECR": (lambda store, args: _add(store, args[0], -1), 1, 1),
    "INCRBY": (lambda store, args: _add(store, args[0], integer(args[1])), 2, 2),
    "EXPIRE": (_expiry("expire", 1000, False), 2, None),
    "PEXPIRE": (_expiry("pexpire", 1, False), 2, None),
    "PEXPIREAT": (_expiry("pexpireat", 1, True), 2, None),
    "TTL": (_left(1000), 1, 1),
    "PTTL": (_left(1), 1, 1),
    "PERSIST": (_persist, 1, 1),
    "HSET": (_hset, 3, None),
    "HGET": (lambda store, args: _fields(store, args[0]).get(args[1]), 2, 2),
    "HEXISTS": (lambda store, args: int(args[1] in _fields(store, args[0])), 2, 2),
    "HMGET": (_hmget, 2, None),
    "HDEL": (_hdel, 2, None),
    "HINCRBY": (_hincrby, 3, 3),
    "ZADD": (_zadd, 3, None),
    "ZRANGE": (_zrange, 3, None),
    "ZREM": (_zrem, 2, None),
    "ZREMRANGEBYSCORE": (_zremrangebyscore, 3, 3),
    "ZCARD": (lambda store, args: len(value_of(store, args[0], Scores) or ()), 1, 1),
    **LISTS,
}
WRITES = frozenset(_COMMANDS) - {
    "PING", "TIME", "GET", "EXISTS", "TTL", "PTTL", "HGET", "HEXISTS", "HMGET", "ZRANGE", "ZCARD",
    "LLEN", "LRANGE",
}  # fmt: skip
"""Commands that may change data."""
NAMES = frozenset(_COMMANDS)
ALLOCATES = WRITES & {
    "SET", "SETNX", "INCR", "DECR", "INCRBY", "HSET", "HINCRBY", "ZADD", "LPUSH", "RPUSH",
}  # fmt: skip
"""Commands that Redis refuses while its memory is at its limit (flag denyoom)."""
OOM = "OOM command not allowed when used memory > 'maxmemory'."


def text(argument: Any) -> str:
    """Return an argument as redis-py sends it."""
    if isinstance(argument, str):
        return argument
    if isinstance(argument, bytes):
        return argument.decode()
    if isinstance(argument, bool) or not isinstance(argument, int | float):
        raise TypeError(f"redis-py cannot send a {type(argument).__name__}: {argument!r}")
    return repr(argument)


def execute(store: Store, name: str, args: Arguments) -> Any:
    """Execute one command. Raises CommandError with Redis' message."""
    found = _COMMANDS.get(name)
    if found is None:
        raise Unknown(f"the model of Redis has no command {name}")
    command, least, most = found
    if len(args) < least or (most is not None and len(args) > most):
        raise CommandError(f"ERR wrong number of arguments for '{name.lower()}' command")
    if store.full and name in ALLOCATES:
        raise CommandError(OOM)
    return command(store, args)
