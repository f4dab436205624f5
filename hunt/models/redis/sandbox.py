"""The Lua environment of Redis' scripts, in Lua.

It has the functions that Redis offers, without access to the host. Its tables cannot be changed, so
scripts leave nothing behind. redis.call is a function of Python: a Lua function that a script calls
last (`return redis.call(...)`) would hide the line of the call, which errors name.
"""

from __future__ import annotations

PRELUDE = rb"""
local call, fraction, seed, sha1hex, words_of, lacks, getinfo = ...

local READ_ONLY = 'Attempt to modify a readonly table'
local protected = setmetatable({}, {__mode = 'k'})

local function protect(content, missing)
  local made = setmetatable({}, {
    __index = missing and function(_, name)
      if content[name] == nil then missing(name) end
      return content[name]
    end or content,
    __newindex = function() error(READ_ONLY, 2) end,
  })
  protected[made] = content
  return made
end

local function changing(change)
  return function(table, ...)
    if protected[table] then error(READ_ONLY, 0) end
    return change(table, ...)
  end
end

local function copy(from, names)
  local made = {}
  for name in names:gmatch('%S+') do made[name] = from[name] end
  return made
end

local function random(low, high)
  local found = fraction()
  if low == nil then return found end
  if high == nil then low, high = 1, low end
  low, high = math.floor(low), math.floor(high)
  if low > high then lacks('math.random of an empty interval') end
  return math.floor(found * (high - low + 1)) + low
end

-- An error reply of a command is an exception of Python here, and a table in Redis.
local function as_table(why)
  local words = words_of(why)
  if words then return {err = words, ignore_error_stats_update = true} end
  return why
end

-- Redis' pcall returns the words of such an error.
local function guarded(ok, why, ...)
  if ok then return ok, why, ... end
  why = as_table(why)
  if type(why) == 'table' and type(why.err) == 'string' then why = why.err end
  return ok, why, ...
end

local function single(field, prefix)
  return function(words, ...)
    if type(words) ~= 'string' or select('#', ...) > 0 then
      return {err = 'ERR wrong number or type of arguments', ignore_error_stats_update = true}
    end
    if field == 'ok' then return {ok = words} end
    words = words:gsub('^%-', '')
    if not words:find(' ', 1, true) then words = 'ERR ' .. words end
    return {err = words, ignore_error_stats_update = true}
  end
end

local function nothing() end

local tables = {
  string = copy(string, 'byte char dump find format gfind gmatch gsub len lower match rep reverse '
    .. 'sub upper'),
  table = copy(table, 'concat foreach foreachi getn insert maxn remove setn sort'),
  math = copy(math, 'abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp '
    .. 'log log10 max min mod modf pi pow rad sin sinh sqrt tan tanh'),
  coroutine = copy(coroutine, 'create resume running status wrap yield'),
}
tables.math.random, tables.math.randomseed = random, seed

local redis = protect({
  call = call, pcall = function(...)
    local ok, reply = pcall(call, ...)
    if ok then return reply end
    return as_table(reply)
  end,
  error_reply = single('err'), status_reply = single('ok'), sha1hex = sha1hex,
  log = nothing, breakpoint = nothing, debug = nothing,
  replicate_commands = function() return true end, set_repl = nothing,
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
  REDIS_VERSION = '7.0.15', REDIS_VERSION_NUM = 458767,
}, function(name)
  if name == 'setresp' or name == 'acl_check_cmd' then lacks('redis.' .. name) end
end)

local own = copy(_G, 'assert collectgarbage error gcinfo getmetatable ipairs next rawequal rawget '
  .. 'select tonumber tostring type unpack xpcall')
own._VERSION = 'Lua 5.1'
own.redis = redis
for name, content in pairs(tables) do own[name] = protect(content) end
own.pcall = function(...) return guarded(pcall(...)) end
own.rawset, own.setmetatable = changing(rawset), changing(setmetatable)
own.pairs = function(table) return pairs(protected[table] or table) end

local env = protect(own, function(name)
  if name == 'cjson' or name == 'cmsgpack' or name == 'bit' or name == 'struct' then lacks(name) end
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 3)
end)
own._G = env

-- Code that a script loads has the script's globals.
local function loaded(load)
  return function(...)
    local made, why = load(...)
    if made then setfenv(made, env) end
    return made, why
  end
end
own.type = function(value)
  return (value == call or value == sha1hex) and 'function' or type(value)
end
own.loadstring, own.load = loaded(loadstring), loaded(load)

-- Redis' own handler (__redis__err__handler): where a script failed.
local function place(why)
  why = as_table(why)
  if type(why) ~= 'table' then why = {err = 'ERR ' .. tostring(why)} end
  for level = 2, 20 do
    local seen = getinfo(level, 'Sl')
    if seen == nil then break end
    if seen.what ~= 'C' and seen.source ~= '@prelude' then
      why.source, why.line = seen.source, seen.currentline
      break
    end
  end
  return why
end

local function compile(body)
  local made, why = loadstring(body, '@user_script')
  if not made then return nil, why end
  setfenv(made, env)
  return made
end

local function run(made, keys, args)
  own.KEYS, own.ARGV = keys, args
  return xpcall(made, place)
end

return compile, run
"""
