"""Redis' commands for streams without groups (t_stream.c of Redis 7.0).

XREAD never blocks here: a client that would have to wait has no model. `~` deletes all entries or
none, as in Redis while they are in one node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fencepost.hunt.models.redis.arguments import (
    LARGEST,
    SYNTAX,
    Arguments,
    Command,
    CommandError,
    integer,
    made,
    value_of,
)
from fencepost.hunt.models.redis.replies import ByName
from fencepost.hunt.models.redis.store import Store
from fencepost.hunt.models.redis.stream_ids import following, read_bound, read_id
from fencepost.hunt.models.redis.stream_value import ID, LAST, Entry, Stream, words
from fencepost.hunt.sim.unknown import Unknown

NODE = 100
"""The number of entries of a node (stream-node-max-entries)."""
_SMALLER = "ERR The ID specified in XADD is equal or smaller than the target stream top item"


class _Trim:
    """The options of XADD and XTRIM."""

    def __init__(self, args: list[str], adds: bool) -> None:
        self.strategy, self.most, self.least, self.limit = "", 0, (0, 0), 0
        self.about = self.limited = self.without_key = False
        self._adds = adds
        while args and not (adds and self._is_id(args[0])):
            self._option(args.pop(0).lower(), args)
        if self.limit and not self.strategy:
            raise CommandError(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
            )
        if not adds and not self.strategy:
            raise CommandError("ERR syntax error, XTRIM must be called with a trimming strategy")
        if self.limited and not self.about:
            raise CommandError(
                "ERR syntax error, LIMIT cannot be used without the special ~ option"
            )

    def _is_id(self, word: str) -> bool:
        return word.lower() not in ("maxlen", "minid", "limit", "nomkstream")

    def _option(self, word: str, args: list[str]) -> None:
        if word == "nomkstream" and self._adds:
            self.without_key = True
        elif word in ("maxlen", "minid") and args:
            if self.strategy:
                raise CommandError(
                    "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
                )
            self.strategy = word
            self.about = len(args) > 1 and args[0] == "~"
            if len(args) > 1 and args[0] in ("~", "="):
                args.pop(0)
            self._threshold(args.pop(0))
        elif word == "limit" and args:
            self.limit, self.limited = integer(args.pop(0)), True
            if self.limit < 0:
                raise CommandError("ERR The LIMIT argument must be >= 0.")
        else:
            raise CommandError(SYNTAX)

    def _threshold(self, text: str) -> None:
        if self.strategy == "minid":
            self.least = read_id(text)
            return
        self.most = integer(text)
        if self.most < 0:
            raise CommandError("ERR The MAXLEN argument must be >= 0.")

    def apply(self, store: Store, key: str, stream: Stream) -> int:
        """Delete the oldest entries; return how many."""
        found = list(stream.entries)
        if not self.strategy:
            return 0
        if self.strategy == "maxlen":
            gone = found[: max(0, len(found) - self.most)]
        else:
            gone = [one for one in found if one < self.least]
        if self.about:
            if stream.added >= NODE:
                raise Unknown("the model of Redis has no ~ for streams of 100 entries and more")
            if len(gone) < len(found) or 0 < self.limit < len(found):
                return 0  # Redis deletes whole nodes only, and there is only one
        for one in gone:
            del stream.entries[one]
        if gone:
            store.signal("t", "xtrim", key)
        return len(gone)


def _add(store: Store, args: Arguments) -> Any:
    key, *rest = args
    trim = _Trim(rest, adds=True)
    named = rest.pop(0) if rest else "*"
    counted = named.removesuffix("-*") if named not in ("*", "-*") else ""
    given = None if named == "*" else read_id(counted if counted != named else named)
    if not rest or len(rest) % 2:
        raise CommandError("ERR wrong number of arguments for 'xadd' command")
    exact = given is not None and not named.endswith("-*")
    if exact and given == (0, 0):
        raise CommandError("ERR The ID specified in XADD must be greater than 0-0")
    if trim.without_key and value_of(store, key, Stream) is None:
        return None
    stream = made(store, key, Stream)
    chosen = given if exact and given is not None else _next(store, stream, given)
    if chosen is None or chosen <= stream.last:
        raise CommandError(_SMALLER)
    stream.entries[chosen] = list(rest)
    stream.last = chosen
    stream.added += 1
    store.signal("t", "xadd", key)
    trim.apply(store, key, stream)
    return words(chosen)


def _next(store: Store, stream: Stream, given: ID | None) -> ID | None:
    """Return the ID that Redis chooses: by the server's clock, or with the given first number."""
    first = store.now_ms if given is None else given[0]
    if first > stream.last[0]:
        return first, 0
    if given is not None and first < stream.last[0]:
        return None
    return following(stream.last)


def _trimmed(store: Store, args: Arguments) -> Any:
    key, *rest = args
    trim = _Trim(rest, adds=False)
    stream = value_of(store, key, Stream)
    return 0 if stream is None else trim.apply(store, key, stream)


def _delete(store: Store, args: Arguments) -> Any:
    key, *rest = args
    stream = value_of(store, key, Stream)
    if stream is None:
        return 0
    ids = list(map(read_id, rest))
    gone = [one for one in ids if stream.entries.pop(one, None) is not None]
    if gone:
        stream.deleted = max(stream.deleted, *gone)
        store.signal("t", "xdel", key)
    return len(gone)


def _range(backward: bool) -> Command:
    def within(store: Store, args: Arguments) -> Any:
        key, *bounds = args[:3]
        first, last = reversed(bounds) if backward else bounds
        # The bound that comes first is read first.
        if backward:
            ends = read_bound(last, True)
            begins = read_bound(first, False)
        else:
            begins, ends = read_bound(first, False), read_bound(last, True)
        count = _counted(list(args[3:]))
        stream = value_of(store, key, Stream)
        if stream is None:
            return []
        if count == 0:
            return None
        found = stream.between(begins, ends)
        found = found[::-1] if backward else found
        return [stream.shown(one) for one in found[:count]]

    return within


def _counted(options: list[str]) -> int | None:
    """Return the value of COUNT; None without it."""
    count = None
    while options:
        if options.pop(0).upper() != "COUNT" or not options:
            raise CommandError(SYNTAX)
        count = max(0, integer(options.pop(0)))
    return count


class Asked(NamedTuple):
    """The arguments of XREAD or XREADGROUP. `most`: entries of each stream; None: all."""

    most: int | None
    waits: bool
    noack: bool
    group: tuple[str, str] | None
    keys: list[str]
    ids: list[str]


def asked(args: Arguments, name: str) -> Asked:
    """Read the options of XREAD or XREADGROUP."""
    rest, count, waits, noack = list(args), None, False, False
    group: tuple[str, str] | None = None
    while rest:
        word = rest.pop(0).upper()
        if word == "BLOCK" and rest:
            _wait_ms(rest.pop(0))
            waits = True
        elif word == "COUNT" and rest:
            count = max(0, integer(rest.pop(0))) or None
        elif word == "GROUP" and len(rest) > 1:
            if name == "xread":
                raise CommandError(
                    "ERR The GROUP option is only supported by XREADGROUP. You called XREAD "
                    "instead."
                )
            group = rest.pop(0), rest.pop(0)
        elif word == "NOACK":
            if name == "xread":
                raise CommandError(
                    "ERR The NOACK option is only supported by XREADGROUP. You called XREAD "
                    "instead."
                )
            noack = True
        elif word == "STREAMS" and rest:
            break
        else:
            raise CommandError(SYNTAX)
    if not rest:
        raise CommandError(SYNTAX)
    if len(rest) % 2:
        raise CommandError(
            f"ERR Unbalanced {name.upper()} list of streams: for each stream key an ID or '$' must "
            "be specified."
        )
    if name == "xreadgroup" and group is None:
        raise CommandError("ERR Missing GROUP option for XREADGROUP")
    half = len(rest) // 2
    return Asked(count, waits, noack, group, rest[:half], rest[half:])


def _wait_ms(text: str) -> None:
    try:
        found = integer(text)
    except CommandError:
        raise CommandError("ERR timeout is not an integer or out of range") from None
    if not 0 <= found < LARGEST:
        raise CommandError("ERR timeout is negative")


def answer(found: list[list[Any]], waits: bool, name: str) -> Any:
    """Return the entries by stream; nothing: None. Raises Unknown if the client has to wait."""
    if not found and waits:
        raise Unknown(f"the model of Redis has no {name.upper()} that waits for an entry")
    return ByName(found) if found else None


def _read(store: Store, args: Arguments) -> Any:
    what = asked(args, "xread")
    after: list[ID] = []
    for key, text in zip(what.keys, what.ids, strict=True):
        stream = value_of(store, key, Stream)
        if text == "$":
            after.append(stream.last if stream else (0, 0))
        elif text == ">":
            raise CommandError(
                "ERR The > ID can be specified only when calling XREADGROUP using the GROUP "
                "<group> <consumer> option."
            )
        else:
            after.append(read_id(text))
    found: list[list[Any]] = []
    for key, one in zip(what.keys, after, strict=True):
        stream = value_of(store, key, Stream)
        entries: list[Entry] = []
        if stream is not None and one < LAST:
            ids = stream.between(following(one), LAST)[: what.most]
            entries = [stream.shown(each) for each in ids]
        if entries:
            found.append([key, entries])
    return answer(found, what.waits, "xread")


def _length(store: Store, args: Arguments) -> Any:
    stream = value_of(store, args[0], Stream)
    return 0 if stream is None else len(stream.entries)


STREAMS: dict[str, tuple[Command, int, int | None]] = {
    "XADD": (_add, 4, None),
    "XLEN": (_length, 1, 1),
    "XRANGE": (_range(False), 3, None),
    "XREVRANGE": (_range(True), 3, None),
    "XDEL": (_delete, 2, None),
    "XTRIM": (_trimmed, 3, None),
    "XREAD": (_read, 3, None),
}
READS_STREAMS = frozenset({"XLEN", "XRANGE", "XREVRANGE", "XREAD", "XPENDING", "XINFO"})
