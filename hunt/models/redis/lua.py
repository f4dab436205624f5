"""Runs Redis' Lua scripts with a real Lua 5.1 (lupa) against the model's commands.

Values are converted between Lua and Redis as in Redis ("Scripting with Lua"): numbers lose their
fractions, false becomes nil, a table is an array up to its first nil.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from fencepost.hunt.models.redis.arguments import CommandError
from fencepost.hunt.models.redis.commands import OOM, WRITES, execute, text
from fencepost.hunt.models.redis.lists import BLOCKS
from fencepost.hunt.models.redis.store import Store

# The Lua functions that Redis offers to scripts, without access to the host.
_PRELUDE = """
local call, pcall_, null = ...
local function run(body)
  local env = {
    tonumber = tonumber, tostring = tostring, type = type, pairs = pairs, ipairs = ipairs,
    next = next, unpack = unpack, error = error, select = select, pcall = pcall,
    math = math, string = string, table = table, assert = assert,
    redis = {
      call = call, pcall = pcall_,
      error_reply = function(words) return {err = words} end,
      status_reply = function(words) return {ok = words} end,
      sha1hex = nil,
    },
  }
  local made, why = loadstring(body, 'user_script')
  if not made then return nil, why end
  setfenv(made, env)
  return function(keys, args)
    env.KEYS, env.ARGV = keys, args
    return made()
  end
end
return run
"""


class _Lua:
    """The Lua interpreter of this process; `store` belongs to the running script."""

    def __init__(self) -> None:
        from lupa import lua51

        self.store = Store()
        self.wrote = False
        self._lupa = lua51
        self._lua = lua51.LuaRuntime(unpack_returned_tuples=True)
        self._run = self._lua.execute(_PRELUDE, self._call, self._pcall, None)
        self._scripts: dict[str, Any] = {}

    def script(self, body: str) -> Any:
        if body not in self._scripts:
            made = self._run(body)
            if isinstance(made, tuple):
                raise CommandError(f"ERR Error compiling script (new function): {made[1]}")
            self._scripts[body] = made
        return self._scripts[body]

    def table(self, items: Sequence[str]) -> Any:
        return self._lua.table_from(list(items))

    def _call(self, name: str, *args: Any) -> Any:
        store, command = self.store, name.upper()
        if command in BLOCKS:
            raise CommandError("ERR This Redis command is not allowed from script")
        full, store.full = store.full, store.full and not self.wrote
        try:
            reply = execute(store, command, [_argument(one) for one in args])
        except CommandError as error:
            # A script that has begun to write may continue (script.c, scriptVerifyOOM).
            self.wrote = self.wrote or (command in WRITES and str(error) != OOM)
            raise
        finally:
            store.full = full
        self.wrote = self.wrote or command in WRITES
        return self._to_lua(reply)

    def _pcall(self, name: str, *args: Any) -> Any:
        try:
            return self._call(name, *args)
        except CommandError as error:
            return self._lua.table_from({"err": str(error)})

    def _to_lua(self, reply: Any) -> Any:
        if reply is None:
            return False
        if isinstance(reply, list):
            return self._lua.table_from([self._to_lua(one) for one in reply])
        if reply in ("OK", "PONG") and isinstance(reply, str):
            return self._lua.table_from({"ok": reply})
        return reply

    def from_lua(self, value: Any) -> Any:
        if value is None or value is False:
            return None
        if value is True:
            return 1
        if isinstance(value, int | float):
            return int(value)
        if self._lupa.lua_type(value) != "table":
            return value
        if value["err"] is not None:
            raise CommandError(str(value["err"]))
        if value["ok"] is not None:
            return value["ok"]
        found, place = [], 1
        while (one := value[place]) is not None:
            found.append(self.from_lua(one))
            place += 1
        return found


def _argument(value: Any) -> str:
    """Convert an argument of redis.call; numbers as Lua passes them to Redis (%.17g)."""
    if isinstance(value, float):
        return f"{value:.17g}"
    return text(value)


@cache
def _lua() -> _Lua:
    return _Lua()


def evaluate(store: Store, body: str, keys: Sequence[str], args: Sequence[str]) -> Any:
    """Run a script; return its reply. Raises CommandError if the script or a command in it
    fails."""
    lua = _lua()
    script = lua.script(body)
    lua.store, lua.wrote = store, False
    try:
        return lua.from_lua(script(lua.table(keys), lua.table(args)))
    except lua._lupa.LuaError as error:
        raise CommandError(f"ERR Error running script: {error}") from None


Evaluate = Callable[[Store, Sequence[str], Sequence[str]], Any]
