"""A fence that also compares versions, for data that is read, changed and written back.

A fence learns of a token by the first write with it. Suppose that a paused client's write comes
after a later holder's read and before its write: it has the highest token seen so far. Then the
later holder overwrites it unread, and an update is lost. If the version is compared, that second
write is refused.
"""

from __future__ import annotations

from fencepost.workloads.contract.guard import TOKEN, Guard, Rule

_LUA = """
local highest = seen('highest')
if token < highest then return {0, 'token ' .. highest} end
local version = tonumber(redis.call('hget', KEYS[1], 'version') or '0')
if tonumber(ARGV[3]) ~= version then return {0, 'version ' .. version} end
redis.call('hset', KEYS[1], 'highest', ARGV[4])
"""

GUARD = Guard(
    "fenced-version",
    "accepts a write only if its fencing token is at least the highest that it has seen, and the "
    "version that its writer read is current",
    needs=TOKEN,
    rules={
        "lua": Rule(_LUA, refused="token {token}, version {version}: {seen} is current"),
        "sql": Rule("highest <= %(token)s AND version = %(version)s"),
    },
)
