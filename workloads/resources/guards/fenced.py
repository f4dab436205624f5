"""The fence of Kleppmann's article (2016): no token below the highest seen is accepted."""

from __future__ import annotations

from fencepost.workloads.contract.guard import TOKEN, Guard, Rule

_LUA = """
local highest = seen('highest')
if token < highest then return {0, highest} end
redis.call('hset', KEYS[1], 'highest', ARGV[4])
"""

GUARD = Guard(
    "fenced",
    "accepts a write only if its fencing token is at least the highest that it has seen",
    needs=TOKEN,
    rules={
        "lua": Rule(_LUA, refused="token {token} is below {seen}, the highest seen"),
        "sql": Rule("highest <= %(token)s"),
    },
    lower_only=True,
)
