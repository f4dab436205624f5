"""Redis' command XINFO, without FULL (t_stream.c of Redis 7.0)."""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.redis.arguments import Arguments, Command, CommandError, value_of
from fencepost.hunt.models.redis.store import Store
from fencepost.hunt.models.redis.stream_value import Group, Stream, words
from fencepost.hunt.models.redis.streams import NODE
from fencepost.hunt.sim.unknown import Unknown

XINFO: dict[str, tuple[int, int | None]] = {
    "CONSUMERS": (2, 2), "GROUPS": (1, 1), "STREAM": (1, None),
}  # fmt: skip
"""The subcommands of XINFO, with their numbers of arguments."""


def _info(store: Store, args: Arguments) -> Any:
    word, key, *more = args[0].upper(), *args[1:]
    stream = value_of(store, key, Stream)
    if stream is None:
        raise CommandError("ERR no such key")
    if word == "STREAM":
        return _of_stream(stream, more)
    if word == "GROUPS":
        return [_of_group(stream, name) for name in sorted(stream.groups)]
    group = stream.groups.get(more[0])
    if group is None:
        raise CommandError(f"NOGROUP No such consumer group '{more[0]}' for key name '{key}'")
    return [_of_consumer(store, group, name) for name in sorted(group.consumers)]


def _of_stream(stream: Stream, more: list[str]) -> dict[str, Any]:
    if more:
        raise Unknown("the model of Redis has no XINFO STREAM with FULL")
    if stream.added >= NODE:
        raise Unknown("the model of Redis has no XINFO STREAM for 100 entries and more")
    ids = list(stream.entries)
    return {
        "length": len(ids),
        "radix-tree-keys": int(bool(ids)),
        "radix-tree-nodes": 1 + bool(ids),
        "last-generated-id": words(stream.last),
        "max-deleted-entry-id": words(stream.deleted),
        "entries-added": stream.added,
        "recorded-first-entry-id": words(stream.first),
        "groups": len(stream.groups),
        "first-entry": stream.shown(ids[0]) if ids else None,
        "last-entry": stream.shown(ids[-1]) if ids else None,
    }


def _of_group(stream: Stream, name: str) -> dict[str, Any]:
    group = stream.groups[name]
    return {
        "name": name,
        "consumers": len(group.consumers),
        "pending": len(group.pending),
        "last-delivered-id": words(group.last),
        "entries-read": group.read,
        "lag": _lag(stream, group),
    }


def _lag(stream: Stream, group: Group) -> int | None:
    """Return how many entries the group has not read; None: unknown."""
    if not stream.added:
        return 0
    known = group.read is not None and not stream.has_gap_from(group.last)
    read = group.read if known else stream.distance(group.last)
    return None if read is None else stream.added - read


def _of_consumer(store: Store, group: Group, name: str) -> dict[str, Any]:
    idle = max(0, store.now_ms - group.consumers[name])
    return {"name": name, "pending": len(group.of(name)), "idle": idle}


INFO: dict[str, tuple[Command, int, int | None]] = {"XINFO": (_info, 1, None)}
