"""Redis' commands that locks and resources use, with Redis' replies and errors.

A command that is not listed raises Unknown with its name. Replies are those of RESP2, decoded: str,
int, None, or lists of them; statuses such as OK, and doubles, are kinds of str (replies.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencepost.hunt.models.redis.arguments import (
    LARGEST,
    SYNTAX,
    Arguments,
    Command,
    CommandError,
    check_count,
    integer,
    made,
    remove,
    value_of,
)
from fencepost.hunt.models.redis.expiry import EXPIRY, expire_at, when
from fencepost.hunt.models.redis.keys import KEYS, READS_KEYS, type_name
from fencepost.hunt.models.redis.list_moves import MOVES
from fencepost.hunt.models.redis.lists import LISTS
from fencepost.hunt.models.redis.replies import OK, PONG, Status
from fencepost.hunt.models.redis.scored_pops import SCORED_POPS
from fencepost.hunt.models.redis.sorted_sets import ZSETS
from fencepost.hunt.models.redis.store import Store
from fencepost.hunt.models.redis.stream_claims import CLAIMS
from fencepost.hunt.models.redis.stream_groups import GROUPS, XGROUP
from fencepost.hunt.models.redis.stream_info import INFO, XINFO
from fencepost.hunt.models.redis.streams import READS_STREAMS, STREAMS
from fencepost.hunt.sim.unknown import Unknown

Counts = dict[str, tuple[int, int | None]]
"""The least and the largest number of arguments of commands; None: no limit."""
_CUT_SHORT = 40


def _set(store: Store, args: Arguments) -> Any:
    key, value, *words = args
    options = _Options(words, ("NX", "XX", "GET", "KEEPTTL"))
    expires = options.expires_ms("set", store.now_ms)
    # GET needs a string; without it any value is replaced.
    old = value_of(store, key, str) if options.get else store.look(key)
    forbidden = (options.mode == "NX" and old is not None) or (options.mode == "XX" and old is None)
    if not forbidden:
        keep = options.time == "KEEPTTL"
        store.put(key, value, store.expires.get(key) if keep else expires)
        _signal_set(store, key, expires)
    if options.get:
        return old
    return None if forbidden else OK


def _signal_set(store: Store, key: str, expires: int | None = None) -> None:
    if store.listener is not None:
        store.signal("$", "set", key)
        if expires is not None:
            store.signal("g", "expire", key)


class _Options:
    """The options of SET and GETEX. One may be repeated, and the last counts; two that exclude each
    other are an error."""

    def __init__(self, words: list[str], allowed: tuple[str, ...]) -> None:
        self.mode = self.time = self.number = ""
        self.get = False
        while words:
            word = words.pop(0).upper()
            if word not in (*allowed, "EX", "PX", "EXAT", "PXAT"):
                raise CommandError(SYNTAX)
            if word in ("NX", "XX") and self.mode in ("", word):
                self.mode = word
            elif word == "GET":
                self.get = True
            elif word not in ("NX", "XX") and self.time in ("", word):
                self.time = word
                if word not in ("KEEPTTL", "PERSIST"):
                    self.number = _next(words)
            else:
                raise CommandError(SYNTAX)

    def expires_ms(self, command: str, now_ms: int) -> int | None:
        """Return the time (ms of the wall clock) at which the key expires, if it is set."""
        if self.time in ("", "KEEPTTL", "PERSIST"):
            return None
        return when(command, now_ms, self.time, self.number)


def _next(words: list[str]) -> str:
    if not words:
        raise CommandError(SYNTAX)
    return words.pop(0)


def _set_expiring(name: str, word: str) -> Command:
    def set_expiring(store: Store, args: Arguments) -> Any:
        expires = when(name, store.now_ms, word, args[1])
        store.put(args[0], args[2], expires)
        _signal_set(store, args[0], expires)
        return OK

    return set_expiring


def _getset(store: Store, args: Arguments) -> Any:
    old = value_of(store, args[0], str)
    store.put(args[0], args[1])
    _signal_set(store, args[0])
    return old


def _getdel(store: Store, args: Arguments) -> Any:
    old = value_of(store, args[0], str)
    if store.delete(args[0]):
        store.signal("g", "del", args[0])
    return old


def _getex(store: Store, args: Arguments) -> Any:
    key, *words = args
    options = _Options(words, ("PERSIST",))
    found = value_of(store, key, str)
    if found is None:
        return None
    expires = options.expires_ms("getex", store.now_ms)
    if options.time == "PERSIST":
        if store.expires.pop(key, None) is not None:
            store.signal("g", "persist", key)
    elif expires is not None:
        expire_at(store, key, expires)
    return found


def _mget(store: Store, args: Arguments) -> Any:
    found = [store.look(key) for key in args]
    return [value if type(value) is str else None for value in found]


def _strlen(store: Store, args: Arguments) -> Any:
    found = value_of(store, args[0], str) or ""
    return len(found.encode("utf-8", "surrogateescape"))


def _type(store: Store, args: Arguments) -> Any:
    return Status(type_name(store.look(args[0])))


def _ping(store: Store, args: Arguments) -> Any:
    check_count("ping", args, 0, 1)
    return args[0] if args else PONG


def _setnx(store: Store, args: Arguments) -> Any:
    if store.look(args[0]) is not None:
        return 0
    store.put(args[0], args[1])
    _signal_set(store, args[0])
    return 1


def _del(store: Store, args: Arguments) -> Any:
    gone = 0
    for key in args:
        if store.look(key) is not None and store.delete(key):
            store.signal("g", "del", key)
            gone += 1
    return gone


def _add(store: Store, key: str, by: int) -> Any:
    found = value_of(store, key, str)
    old = 0 if found is None else integer(found)
    if not -LARGEST - 1 <= old + by <= LARGEST:
        raise CommandError("ERR increment or decrement would overflow")
    store.values[key] = str(old + by)
    store.signal("$", "incrby", key)
    return old + by


def _decrby(store: Store, args: Arguments) -> Any:
    by = integer(args[1])
    if by == -LARGEST - 1:
        raise CommandError("ERR decrement would overflow")
    return _add(store, args[0], -by)


def _time(store: Store, args: Arguments) -> Any:
    """Return the wall clock in seconds, and the microseconds of that second, of whole ms here."""
    return [str(store.now_ms // 1000), str(store.now_ms % 1000 * 1000)]


def _hset(store: Store, args: Arguments) -> Any:
    key, *pairs = args
    if len(pairs) % 2:
        raise CommandError("ERR wrong number of arguments for 'hset' command")
    fields = made(store, key, dict)
    before = len(fields)
    fields.update(zip(pairs[::2], pairs[1::2], strict=True))
    store.signal("h", "hset", key)
    return len(fields) - before


def _hsetnx(store: Store, args: Arguments) -> Any:
    key, name, value = args
    fields = made(store, key, dict)
    if name in fields:
        return 0
    fields[name] = value
    store.signal("h", "hset", key)
    return 1


def _fields(store: Store, key: str) -> dict[str, str]:
    return value_of(store, key, dict) or {}


def _hmget(store: Store, args: Arguments) -> Any:
    fields = _fields(store, args[0])
    return [fields.get(name) for name in args[1:]]


def _hdel(store: Store, args: Arguments) -> Any:
    return remove(store, args, dict, "hdel")


def _hincrby(store: Store, args: Arguments) -> Any:
    key, name, by = args
    amount = integer(by)
    found = value_of(store, key, dict)
    try:
        old = integer(found.get(name, "0")) if found else 0
    except CommandError:
        raise CommandError("ERR hash value is not an integer") from None
    if not -LARGEST - 1 <= old + amount <= LARGEST:
        raise CommandError("ERR increment or decrement would overflow")
    fields = made(store, key, dict)
    fields[name] = str(old + amount)
    store.signal("h", "hincrby", key)
    return old + amount


# The minimum and maximum number of arguments of each; None: no maximum.
_COMMANDS: dict[str, tuple[Command, int, int | None]] = {
    "PING": (_ping, 0, None),
    "ECHO": (lambda store, args: args[0], 1, 1),
    "TIME": (_time, 0, 0),
    "TYPE": (_type, 1, 1),
    "GET": (lambda store, args: value_of(store, args[0], str), 1, 1),
    "STRLEN": (_strlen, 1, 1),
    "MGET": (_mget, 1, None),
    "GETSET": (_getset, 2, 2),
    "GETDEL": (_getdel, 1, 1),
    "GETEX": (_getex, 1, None),
    "SET": (_set, 2, None),
    "SETEX": (_set_expiring("setex", "EX"), 3, 3),
    "PSETEX": (_set_expiring("psetex", "PX"), 3, 3),
    "SETNX": (_setnx, 2, 2),
    "DEL": (_del, 1, None),
    "UNLINK": (_del, 1, None),
    "EXISTS": (lambda store, args: sum(store.look(key) is not None for key in args), 1, None),
    "INCR": (lambda store, args: _add(store, args[0], 1), 1, 1),
    "DECR": (lambda store, args: _add(store, args[0], -1), 1, 1),
    "INCRBY": (lambda store, args: _add(store, args[0], integer(args[1])), 2, 2),
    "DECRBY": (_decrby, 2, 2),
    "HSET": (_hset, 3, None),
    "HSETNX": (_hsetnx, 3, 3),
    "HGET": (lambda store, args: _fields(store, args[0]).get(args[1]), 2, 2),
    "HEXISTS": (lambda store, args: int(args[1] in _fields(store, args[0])), 2, 2),
    "HLEN": (lambda store, args: len(_fields(store, args[0])), 1, 1),
    "HMGET": (_hmget, 2, None),
    "HDEL": (_hdel, 2, None),
    "HINCRBY": (_hincrby, 3, 3),
    **EXPIRY,
    **ZSETS,
    **LISTS,
    **MOVES,
    **SCORED_POPS,
    **KEYS,
    **STREAMS,
    **GROUPS,
    **CLAIMS,
    **INFO,
}
_NO_COMMAND: tuple[Command, int, int | None] = (lambda store, args: None, 1, 0)
READS = frozenset({
    "PING", "ECHO", "TIME", "TYPE", "GET", "MGET", "STRLEN", "EXISTS", "TTL", "PTTL", "HGET",
    "HEXISTS", "HLEN", "HMGET", "ZSCORE", "ZRANK", "ZREVRANK", "ZCARD", "ZCOUNT", "ZRANGE",
    "ZREVRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "LLEN", "LRANGE", "LINDEX", *READS_KEYS,
    *READS_STREAMS,
})  # fmt: skip
WRITES = frozenset(_COMMANDS) - READS
"""Commands that may change data."""
NAMES = frozenset(_COMMANDS)
ALLOCATES = WRITES & {
    "SET", "SETNX", "SETEX", "PSETEX", "GETSET", "INCR", "DECR", "INCRBY", "DECRBY", "HSET",
    "HSETNX", "HINCRBY", "ZADD", "ZINCRBY", "LPUSH", "RPUSH", "XADD", "MSET", "MSETNX", "SADD",
    "LPUSHX", "RPUSHX", "LSET", "LMOVE", "RPOPLPUSH", "BLMOVE", "BRPOPLPUSH",
}  # fmt: skip
"""Commands that Redis refuses while its memory is at its limit (flag denyoom)."""
OOM = "OOM command not allowed when used memory > 'maxmemory'."
READ_ONLY = "READONLY You can't write against a read only replica."
OF_THE_SERVER: Counts = {
    "EVAL": (2, None), "EVALSHA": (2, None), "SCRIPT": (1, None), "ROLE": (0, 0), "WAIT": (2, 2),
    "PUBLISH": (2, 2), "PUBSUB": (1, None), "CONFIG": (1, None), "INFO": (0, None),
}  # fmt: skip
"""Commands of the whole server (server.py), with their numbers of arguments."""
OF_THE_CONNECTION: Counts = {
    "HELLO": (0, None), "AUTH": (1, None), "CLIENT": (1, None), "SELECT": (1, 1), "MULTI": (0, 0),
    "DISCARD": (0, 0), "EXEC": (0, 0), "RESET": (0, 0), "QUIT": (0, None), "WATCH": (1, None),
    "UNWATCH": (0, 0), "SUBSCRIBE": (1, None), "PSUBSCRIBE": (1, None), "UNSUBSCRIBE": (0, None),
    "PUNSUBSCRIBE": (0, None),
}  # fmt: skip
"""Commands that concern the connection only (session.py), and reveal nothing about a lock."""
_COUNTS: Counts = {
    **{name: (least, most) for name, (_, least, most) in _COMMANDS.items()},
    **OF_THE_SERVER,
    **OF_THE_CONNECTION,
}
WORDS: dict[str, Counts] = {
    "CLIENT": {
        "ID": (0, 0),
        "GETNAME": (0, 0),
        "SETNAME": (1, 1),
        "NO-EVICT": (1, 1),
        "LIST": (0, None),
        "KILL": (1, None),
    },
    "XGROUP": XGROUP,
    "XINFO": XINFO,
    "PUBSUB": {"CHANNELS": (0, 1), "NUMSUB": (0, None), "NUMPAT": (0, 0)},
    "CONFIG": {"GET": (1, None), "SET": (2, None), "RESETSTAT": (0, 0)},
    "SCRIPT": {"LOAD": (1, 1), "EXISTS": (1, None), "FLUSH": (0, None), "KILL": (0, 0)},
}
"""The subcommands of a command that has any."""
_WORDS_WITHOUT_MODEL = frozenset({
    "CACHING", "GETREDIR", "HELP", "INFO", "PAUSE", "REPLY", "TRACKING", "TRACKINGINFO", "UNBLOCK",
    "UNPAUSE", "DEBUG", "SHARDCHANNELS", "SHARDNUMSUB", "REWRITE",
})  # fmt: skip


def text(argument: Any) -> str:
    """Return an argument as redis-py sends it."""
    if isinstance(argument, str):
        return argument
    if isinstance(argument, bytes):
        return argument.decode("utf-8", "surrogateescape")
    if isinstance(argument, bool) or not isinstance(argument, int | float):
        raise TypeError(f"redis-py cannot send a {type(argument).__name__}: {argument!r}")
    return repr(argument)


def check(store: Store, name: str, args: Sequence[Any]) -> None:
    """Raise CommandError if the server refuses a command before it looks at the data. Raises
    Unknown if the model lacks it."""
    count = _COUNTS.get(name)
    if count is None:
        raise Unknown(f"the model of Redis has no command {name[:_CUT_SHORT]}")
    check_count(name, args, *count)
    if name in WORDS:
        _check_word(name, args)
    if store.full and name in ALLOCATES:
        raise CommandError(OOM)
    if store.keeps and name in WRITES:
        raise CommandError(READ_ONLY)


def _check_word(name: str, args: Sequence[Any]) -> None:
    """Check a subcommand, and the number of its arguments."""
    word, words = text(args[0]).upper(), WORDS[name]
    if word in words:
        check_count(f"{name}|{word}", args[1:], *words[word])
    elif word in _WORDS_WITHOUT_MODEL:
        raise Unknown(f"the model of Redis has no command {name} {word}")
    else:
        raise CommandError(f"ERR unknown subcommand '{args[0]}'. Try {name} HELP.")


def execute(store: Store, name: str, args: Arguments) -> Any:
    """Execute one command. Raises CommandError with Redis' message."""
    command, least, most = _COMMANDS.get(name, _NO_COMMAND)
    many = len(args)
    if many < least or (most is not None and many > most) or store.full or store.keeps:
        check(store, name, args)
    return command(store, args)
