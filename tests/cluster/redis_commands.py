"""Random commands for Redis, more often valid than invalid."""

from __future__ import annotations

import time
from random import Random

from fencepost.hunt.models.redis.commands import NAMES
from fencepost.hunt.models.redis.lists import BLOCKS
from fencepost.hunt.models.redis.scripts import KNOWN

KEYS = ("a", "b", "c", "d")
VALUES = ("x", "y", "1", "7", "-3", "9223372036854775807", "1.5", "")
# Short enough to expire between two commands, and long enough to survive some.
TIMES = ("1", "2", "3", "5", "8", "0", "-1", "40", "100000", "x")
NUMBERS = ("1", "7", "-3", "1.5")
FIELDS = ("version", "highest", "writer", "value")

UNORDERED = {"KEYS", "SCAN", "SMEMBERS", "SSCAN"}
"""Their replies are in the order of a hash table; tests/hunt/models/redis_dialogue.py has them."""
STREAMS = {name for name in NAMES if name.startswith("X")}
"""They need arguments that fit together; tests/hunt/models/redis_dialogue.py has them."""


class Commands:
    """Random commands, more often valid than invalid."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def draw(self) -> list[str]:
        random = self._random
        if random.random() < 0.25:
            body = random.choice(list(KNOWN))
            keys = [random.choice(KEYS) for _ in range(3)]
            args = [
                random.choice(VALUES[:4]),
                random.choice(TIMES),
                *self._some(("0", "1", "2"), 3),
            ]
            return ["EVAL", body, "3", *keys, *args]
        name = random.choice(sorted(NAMES - BLOCKS - UNORDERED - STREAMS))
        return [name, *getattr(self, f"_{name.lower()}", self._any)()]

    def _some(self, words: tuple[str, ...], count: int) -> list[str]:
        return [self._random.choice(words) for _ in range(count)]

    def _any(self) -> list[str]:
        random = self._random
        return self._some(KEYS, 1) + self._some(VALUES, random.randrange(3))

    def _key(self) -> list[str]:
        return self._some(KEYS, 1)

    _get = _incr = _decr = _ttl = _pttl = _persist = _zcard = _key

    def _set(self) -> list[str]:
        random = self._random
        words = self._some(KEYS, 1) + self._some(VALUES, 1)
        for _ in range(random.randrange(3)):
            word = random.choice(("NX", "XX", "PX", "EX", "GET", "KEEPTTL", "BAD"))
            words += [word, random.choice(TIMES)] if word in ("PX", "EX") else [word]
        return words

    def _pexpire(self) -> list[str]:
        return self._some(KEYS, 1) + self._some(TIMES, 1)

    _expire = _pexpire

    def _psetex(self) -> list[str]:
        return self._some(KEYS, 1) + self._some(TIMES, 1) + self._some(VALUES, 1)

    _setex = _psetex

    def _pexpireat(self) -> list[str]:
        at = int(time.time() * 1000) + self._random.choice((-5, 2, 5, 100000))
        return [*self._some(KEYS, 1), str(at)]

    def _hset(self) -> list[str]:
        # The scripts' own fields are numbers.
        field = self._random.choice(FIELDS)
        return [*self._key(), field, self._random.choice(VALUES if field == "value" else NUMBERS)]

    def _hget(self) -> list[str]:
        return self._some(KEYS, 1) + self._some(FIELDS, 1)

    _hdel = _hexists = _hget

    def _hmget(self) -> list[str]:
        return self._some(KEYS, 1) + self._some(FIELDS, 2)

    def _hincrby(self) -> list[str]:
        # Lua counts in doubles: no token reaches the numbers that lose digits.
        field = self._random.choice(FIELDS)
        return [*self._key(), field, self._random.choice(VALUES if field == "value" else NUMBERS)]

    def _zadd(self) -> list[str]:
        # Members are numbers of grants, as in the locks' own.
        return [*self._key(), *self._some(("1", "2", "3", "2.5", "x"), 1), *self._some(NUMBERS, 1)]

    def _zrange(self) -> list[str]:
        return self._some(KEYS, 1) + self._some(("0", "1", "-1", "5", "x"), 2)

    def _zrem(self) -> list[str]:
        return self._some(KEYS, 2)

    def _lpush(self) -> list[str]:
        return self._some(KEYS, 1) + self._some(VALUES, self._random.choice((1, 1, 2, 3)))

    _rpush = _lpush
    _llen = _key

    def _lpop(self) -> list[str]:
        counts = self._some(("0", "1", "2", "-1", "x"), 1)
        return self._key() + (counts if self._random.random() < 0.5 else [])

    _rpop = _lpop

    def _lrange(self) -> list[str]:
        return self._some(KEYS, 1) + self._some(("0", "1", "-1", "-2", "5", "x"), 2)

    def _zremrangebyscore(self) -> list[str]:
        return self._some(KEYS, 1) + self._some(("-inf", "+inf", "1", "(2", "3", "x"), 2)
