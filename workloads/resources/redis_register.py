"""Registers in a Redis server of their own: each a hash of value, version and highest token.

Whether a write is accepted is decided in one Lua script, and so atomically; the version rises
by one with every write that was accepted, whatever its writer had read. It is the guard that
makes the difference, and with `none` nothing is checked: that is the resource whose data the
lock alone must protect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencepost.workloads.locks.lock import Env, Failed, Grant
from fencepost.workloads.resources.resource import register

# KEYS[1] the register; ARGV: guard, value, version read, token and minor ('' where the grant has
# none). Answers {1, the new version} or {0, why: what the guard compared with}.
#
# `paired` (idelvall under Kleppmann 2016): the minor is the lowest grant that was not given
# back; a write is accepted if no token from it on was seen, or by the writer of the last
# accepted write. A refused write still closes the door behind it: whoever comes before it in
# order of tokens is refused from now on, so that a holder that wrote and died is in the way of
# one successor and not of all.
WRITE = """
local function seen(field) return tonumber(redis.call('hget', KEYS[1], field) or '-1') end
local guard, token, minor = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])
if guard == 'fenced' then
  local highest = seen('highest')
  if token < highest then return {0, highest} end
  redis.call('hset', KEYS[1], 'highest', ARGV[4])
elseif guard == 'paired' then
  local highest = seen('highest')
  local accepted = minor > highest or token == seen('writer')
  if token > highest then
    redis.call('hset', KEYS[1], 'highest', ARGV[4], 'writer', accepted and ARGV[4] or '-1')
  end
  if not accepted then return {0, highest} end
elseif guard == 'compare-and-set' then
  local version = tonumber(redis.call('hget', KEYS[1], 'version') or '0')
  if tonumber(ARGV[3]) ~= version then return {0, version} end
end
redis.call('hset', KEYS[1], 'value', ARGV[2])
return {1, redis.call('hincrby', KEYS[1], 'version', 1)}
"""

_REFUSED = {
    "fenced": "token {token} is below {seen}, the highest seen",
    "paired": "minor {minor} of token {token} is not above {seen}, the highest seen",
    "compare-and-set": "version {version} was read, and {seen} is there",
}


def key(resource: str) -> str:
    return f"resource:{register(resource)}"


class RedisRegister:
    def __init__(
        self,
        env: Env,
        storage: str,
        servers: Sequence[str],
        guard: str,
        timeout_s: float,
    ) -> None:
        self._link = env.connect(storage, timeout_s)
        self._guard = guard

    def read(self, resource: str) -> tuple[Any, int]:
        value, version = self._link.call("HMGET", key(resource), "value", "version")
        return value, int(version or 0)

    def write(self, resource: str, value: Any, version: int, grant: Grant | None) -> int:
        token, minor = (grant.token, grant.minor) if grant else (None, None)
        if self._guard in ("fenced", "paired") and token is None:
            raise Failed("refused", f"the guard is {self._guard} and the grant carries no token")
        if self._guard == "paired" and minor is None:
            raise Failed("refused", "the guard is paired and the grant carries no pair of tokens")
        accepted, number = self._link.call(
            *("EVAL", WRITE, 1, key(resource)),
            *(self._guard, value, version, _text(token), _text(minor)),
        )
        if not accepted:
            words = _REFUSED[self._guard]
            raise Failed(
                "refused", words.format(token=token, minor=minor, version=version, seen=number)
            )
        return int(number)

    def close(self) -> None:
        self._link.close()


def _text(number: int | None) -> str:
    return "" if number is None else str(number)
