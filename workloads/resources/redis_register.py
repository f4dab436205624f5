"""Registers in a separate Redis server: each a hash of value, version and highest token.

One Lua script decides atomically whether a write is accepted. The version rises by one with every
accepted write, whatever its writer had read. The guard makes the difference; `none` checks nothing,
and only the lock protects the data.
"""

from __future__ import annotations

from typing import Any, Protocol

from fencepost.workloads.contract.guard import Rule
from fencepost.workloads.contract.lock import Failed, Grant
from fencepost.workloads.contract.resource import register
from fencepost.workloads.contract.store import Opening, Store

_BEFORE = """
local function seen(field) return tonumber(redis.call('hget', KEYS[1], field) or '-1') end
local token, minor = tonumber(ARGV[4]), tonumber(ARGV[5])
"""
_AFTER = """
redis.call('hset', KEYS[1], 'value', ARGV[2])
return {1, redis.call('hincrby', KEYS[1], 'version', 1)}
"""


def write_script(rule: Rule) -> str:
    """Return the script that writes to a register if the guard's rule, in Lua, allows it.

    KEYS[1] the register; ARGV: the guard's name, value, version read, token and minor ('' if the
    grant has none). It answers {1, the new version} or {0, the value that the guard compared with}.
    The guard's own part returns early to refuse; it has `seen(field)` of the register, `token` and
    `minor`.
    """
    return _BEFORE + rule.text + _AFTER


def key(resource: str) -> str:
    return f"resource:{register(resource)}"


class Calls(Protocol):
    """The part of a connection that a register needs; see Link (workloads/contract/lock.py)."""

    def call(self, *command: Any) -> Any: ...
    def close(self) -> None: ...


class RedisRegister:
    """Registers on one server. `link`: to that server, if it is not the one on the storage node."""

    def __init__(self, at: Opening, link: Calls | None = None) -> None:
        self._link: Calls = link or at.env.connect(at.storage, at.timeout_s)
        self._guard = at.guard
        self._script = write_script(at.rule)
        self._refused = at.rule.refused

    def read(self, resource: str) -> tuple[Any, int]:
        value, version = self._link.call("HMGET", key(resource), "value", "version")
        return value, int(version or 0)

    def write(self, resource: str, value: Any, version: int, grant: Grant | None) -> int:
        self._guard.require(grant)
        token, minor = (grant.token, grant.minor) if grant else (None, None)
        accepted, number = self._link.call(
            *("EVAL", self._script, 1, key(resource)),
            *(self._guard.name, value, version, _text(token), _text(minor)),
        )
        if not accepted:
            words = self._refused
            raise Failed(
                "refused", words.format(token=token, minor=minor, version=version, seen=number)
            )
        return int(number)

    def close(self) -> None:
        self._link.close()


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


STORE = Store("redis", "a hash in a separate Redis server", RedisRegister, language="lua")
