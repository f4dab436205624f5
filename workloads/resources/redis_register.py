"""A register in a Redis server of its own: a hash of value, version and highest token.

Whether a write is accepted is decided in one Lua script, and so atomically; the version rises
by one with every write that was accepted, whatever its writer had read. It is the guard that
makes the difference, and with `none` nothing is checked: that is the resource whose data the
lock alone must protect.
"""

from __future__ import annotations

from typing import Any

from workloads.locks.lock import Failed, Grant, Link

# KEYS[1] the register; ARGV: guard, value, token ('' where the grant has none).
WRITE = """
if ARGV[1] == 'fenced' then
  local highest = tonumber(redis.call('hget', KEYS[1], 'highest') or '-1')
  if tonumber(ARGV[3]) < highest then return {0, highest} end
  redis.call('hset', KEYS[1], 'highest', ARGV[3])
end
redis.call('hset', KEYS[1], 'value', ARGV[2])
return {1, redis.call('hincrby', KEYS[1], 'version', 1)}
"""


class RedisRegister:
    def __init__(self, link: Link, name: str, guard: str) -> None:
        self._link = link
        self._key = f"resource:{name}"
        self._guard = guard

    def read(self) -> tuple[Any, int]:
        value, version = self._link.call("HMGET", self._key, "value", "version")
        return value, int(version or 0)

    def write(self, value: Any, version: int, grant: Grant | None) -> int:
        token = grant.token if grant else None
        if self._guard == "fenced" and token is None:
            raise Failed("refused", "the guard is fenced and the grant carries no token")
        accepted, number = self._link.call(
            "EVAL", WRITE, 1, self._key, self._guard, value, "" if token is None else token
        )
        if not accepted:
            raise Failed("refused", f"token {token} is below {number}, the highest seen")
        return int(number)

    def close(self) -> None:
        self._link.close()
