"""A resource that is shown a random value with each write, and compares nothing else.

The value tells grants apart and does not order them. The most that can be made of it: a value that
another one has replaced is not let in again. That refuses who writes, sleeps and writes again; a
sleeper whose first write is late shows a value that is new, and is let in (Kleppmann 2016).
"""

from __future__ import annotations

from fencepost.workloads.contract.guard import TOKEN, Guard

_LUA = """
local last = redis.call('hget', KEYS[1], 'last')
if last ~= ARGV[4] then
  if redis.call('hexists', KEYS[1], 'shown:' .. ARGV[4]) == 1 then return {0, last} end
  redis.call('hset', KEYS[1], 'last', ARGV[4], 'shown:' .. ARGV[4], '1')
end
"""

GUARD = Guard(
    "new-value",
    "refuses a write only if its token was replaced by another one (not enough: the first write "
    "of a sleeper shows a new one)",
    stores=("redis",),
    needs=TOKEN,
    lua=_LUA,
    refused="token {token} was replaced by {seen}",
)
