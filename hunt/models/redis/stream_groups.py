"""Redis' commands for the consumer groups of streams (t_stream.c of Redis 7.0)."""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.redis.arguments import (
    SYNTAX,
    Arguments,
    Command,
    CommandError,
    check_count,
    integer,
    value_of,
)
from fencepost.hunt.models.redis.replies import OK, NoList
from fencepost.hunt.models.redis.store import Store
from fencepost.hunt.models.redis.stream_ids import following, read_bound, read_id
from fencepost.hunt.models.redis.stream_value import ID, LAST, Group, Pending, Stream, words
from fencepost.hunt.models.redis.streams import Asked, answer, asked
from fencepost.hunt.sim.unknown import Unknown

_NO_KEY = (
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use "
    "the MKSTREAM option to create an empty stream automatically."
)
_MEANINGLESS = (
    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of "
    "this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would "
    "just return an empty result set."
)
XGROUP: dict[str, tuple[int, int | None]] = {
    "CREATE": (3, None), "SETID": (3, None), "DESTROY": (2, 2), "CREATECONSUMER": (3, 3),
    "DELCONSUMER": (3, 3),
}  # fmt: skip
"""The subcommands of XGROUP, with their numbers of arguments."""


def _group(store: Store, args: Arguments) -> Any:
    word, rest = args[0].upper(), args[1:]
    if word not in XGROUP:
        raise Unknown(f"the model of Redis has no command XGROUP {word[:40]}")
    check_count(f"xgroup|{word}", rest, *XGROUP[word])
    key, name, *more = rest
    makes, entries = _options(word, more)
    stream = value_of(store, key, Stream)
    if stream is None and not makes:
        raise CommandError(_NO_KEY)
    if word == "CREATE":
        return _create(store, key, stream, name, more[0], entries)
    assert stream is not None
    group = stream.groups.get(name)
    if group is None:
        if word == "DESTROY":
            return 0
        raise CommandError(f"NOGROUP No such consumer group '{name}' for key name '{key}'")
    if word == "DESTROY":
        del stream.groups[name]
        store.tell("t", "xgroup-destroy", key)
        return 1
    if word == "SETID":
        group.last = stream.last if more[0] == "$" else read_id(more[0], strict=False)
        group.read = entries
        store.tell("t", "xgroup-setid", key)
        return OK
    if word == "CREATECONSUMER":
        return 0 if more[0] in group.consumers else int(meet(store, key, group, more[0]))
    return _dismiss(store, key, group, more[0])


def _options(word: str, more: list[str]) -> tuple[bool, int | None]:
    """Return whether CREATE makes the stream (MKSTREAM), and the value of ENTRIESREAD; None:
    unknown."""
    options, makes, count = (more[1:] if word in ("CREATE", "SETID") else []), False, -1
    while options:
        option = options.pop(0).upper()
        if option == "MKSTREAM" and word == "CREATE":
            makes = True
        elif option == "ENTRIESREAD" and options:
            count = integer(options.pop(0))
            if count < -1:
                raise CommandError("ERR value for ENTRIESREAD must be positive or -1")
        else:
            raise CommandError(f"ERR unknown subcommand or wrong number of arguments for '{word}'. "
                               "Try XGROUP HELP.")  # fmt: skip
    return makes, None if count < 0 else count


def _create(
    store: Store, key: str, stream: Stream | None, name: str, text: str, entries: int | None
) -> Any:
    newest = (0, 0) if stream is None else stream.last
    last = newest if text == "$" else read_id(text)
    if stream is None:
        stream = Stream()
        store.put(key, stream)
        store.signal("", "", key)
    if name in stream.groups:
        raise CommandError("BUSYGROUP Consumer Group name already exists")
    stream.groups[name] = Group(last, entries)
    store.tell("t", "xgroup-create", key)
    return OK


def meet(store: Store, key: str, group: Group, consumer: str) -> bool:
    """Note that a consumer was seen; create it if it is new, and return whether it was."""
    new = consumer not in group.consumers
    group.consumers[consumer] = store.now_ms
    if new:
        store.tell("t", "xgroup-createconsumer", key)
    return new


def _dismiss(store: Store, key: str, group: Group, consumer: str) -> int:
    """Delete a consumer; return how many entries were pending for it."""
    if consumer not in group.consumers:
        return 0
    del group.consumers[consumer]
    pending = group.of(consumer)
    for one in pending:
        del group.pending[one]
    store.tell("t", "xgroup-delconsumer", key)
    return len(pending)


def known(store: Store, key: str, name: str, where: str = "") -> tuple[Stream, Group]:
    """Return a group. Raises CommandError if there is none."""
    stream = value_of(store, key, Stream)
    group = stream.groups.get(name) if stream is not None else None
    if stream is None or group is None:
        raise CommandError(f"NOGROUP No such key '{key}' or consumer group '{name}'{where}")
    return stream, group


def _read(store: Store, args: Arguments) -> Any:
    what = asked(args, "xreadgroup")
    assert what.group is not None
    name, consumer = what.group
    places: list[tuple[str, Stream, Group, ID | None]] = []
    for key, text in zip(what.keys, what.ids, strict=True):
        stream, group = known(store, key, name, " in XREADGROUP with GROUP option")
        if text == "$":
            raise CommandError(_MEANINGLESS)
        places.append((key, stream, group, None if text == ">" else read_id(text)))
    found: list[list[Any]] = []
    for key, stream, group, after in places:
        if after is None:
            if not stream.between(following(group.last), LAST):
                continue
            meet(store, key, group, consumer)
            found.append([key, _deliver(store, stream, group, consumer, what)])
        else:
            meet(store, key, group, consumer)
            ids = [one for one in group.of(consumer) if one > after][: what.most]
            for one in ids:
                its = group.pending[one]
                its.since_ms, its.times = store.now_ms, its.times + 1
            found.append([key, [stream.shown(one) for one in ids]])
    return answer(found, what.waits, "xreadgroup")


def _deliver(store: Store, stream: Stream, group: Group, consumer: str, what: Asked) -> list[Any]:
    """Give new entries to a consumer."""
    ids = stream.between(following(group.last), LAST)[: what.most]
    for one in ids:
        if group.read is not None and not stream.has_gap_from(one):
            group.read += 1
        elif stream.added:
            group.read = stream.distance(one)
        group.last = one
        if not what.noack:
            group.pending[one] = Pending(consumer, store.now_ms, 1)
    return [stream.shown(one) for one in ids]


def _acknowledge(store: Store, args: Arguments) -> Any:
    key, name, *rest = args
    stream = value_of(store, key, Stream)
    group = stream.groups.get(name) if stream is not None else None
    if group is None:
        return 0
    ids = [read_id(one) for one in rest]
    return sum(group.pending.pop(one, None) is not None for one in ids)


def _pending(store: Store, args: Arguments) -> Any:
    key, name, *rest = args
    idle = 0
    if rest and rest[0].upper() == "IDLE":
        if len(rest) < 5:
            raise CommandError(SYNTAX)
        idle, rest = integer(rest[1]), rest[2:]
    if rest and not 3 <= len(rest) <= 4:
        raise CommandError(SYNTAX)
    if rest:
        count = max(0, integer(rest[2]))
        first, last = read_bound(rest[0], False), read_bound(rest[1], True)
    _, group = known(store, key, name)
    if not rest:
        return _summary(group)
    if len(rest) == 4 and rest[3] not in group.consumers:
        return []
    found: list[Any] = []
    for one in sorted(group.pending):
        its = group.pending[one]
        since = max(0, store.now_ms - its.since_ms)
        mine = len(rest) == 3 or its.consumer == rest[3]
        if first <= one <= last and mine and since >= idle and len(found) < count:
            found.append([words(one), its.consumer, since, its.times])
    return found


def _summary(group: Group) -> list[Any]:
    ids = sorted(group.pending)
    if not ids:
        return [0, None, None, NoList()]
    many = {one: len(group.of(one)) for one in sorted(group.consumers)}
    listed = [[one, str(count)] for one, count in many.items() if count]
    return [len(ids), words(ids[0]), words(ids[-1]), listed]


GROUPS: dict[str, tuple[Command, int, int | None]] = {
    "XGROUP": (_group, 1, None),
    "XREADGROUP": (_read, 6, None),
    "XACK": (_acknowledge, 3, None),
    "XPENDING": (_pending, 2, None),
}
