"""Optimistic writes: the resource compares versions, and no lock is needed."""

from __future__ import annotations

from fencepost.workloads.contract.guard import Guard, Rule

_LUA = """
local version = tonumber(redis.call('hget', KEYS[1], 'version') or '0')
if tonumber(ARGV[3]) ~= version then return {0, version} end
"""

GUARD = Guard(
    "compare-and-set",
    "accepts a write only if the version that its writer read is current; needs no lock",
    rules={
        "lua": Rule(_LUA, refused="version {version} was read, but {seen} is current"),
        "sql": Rule("version = %(version)s"),
    },
    lockless=True,
)
