"""Redis' commands that give pending entries of a stream to another consumer (t_stream.c of Redis
7.0)."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from fencepost.hunt.models.redis.arguments import (
    SYNTAX,
    Arguments,
    Command,
    CommandError,
    integer,
)
from fencepost.hunt.models.redis.store import Store
from fencepost.hunt.models.redis.stream_groups import known, meet
from fencepost.hunt.models.redis.stream_ids import is_id, read_bound, read_id
from fencepost.hunt.models.redis.stream_value import ID, Group, Pending, Stream, words

_TRIES = 10
"""How many entries XAUTOCLAIM looks at for each that it may claim."""
_MOST = (2**63 - 1) // 16
_NUMBERS = ("IDLE", "TIME", "RETRYCOUNT")


class _Options:
    """The options of XCLAIM. `since_ms`: when the entries were delivered last; None: now."""

    def __init__(self, rest: list[str], now_ms: int) -> None:
        self.force = self.just = False
        self.since_ms: int | None = None
        self.times = -1
        self.last: ID = (0, 0)
        while rest:
            given = rest.pop(0)
            word = given.upper()
            if word in ("FORCE", "JUSTID"):
                self.force |= word == "FORCE"
                self.just |= word == "JUSTID"
            elif word in _NUMBERS and rest:
                self._number(word, rest.pop(0), now_ms)
            elif word == "LASTID" and rest:
                self.last = read_id(rest.pop(0))
            else:
                raise CommandError(f"ERR Unrecognized XCLAIM option '{given}'")
        if self.since_ms is not None and not 0 <= self.since_ms <= now_ms:
            self.since_ms = None

    def _number(self, word: str, text: str, now_ms: int) -> None:
        number = _integer(text, f"ERR Invalid {word} option argument for XCLAIM")
        if word == "RETRYCOUNT":
            self.times = number
        else:
            self.since_ms = number if word == "TIME" else now_ms - number


def _integer(text: str, otherwise: str) -> int:
    try:
        return integer(text)
    except CommandError:
        raise CommandError(otherwise) from None


def _claim(store: Store, args: Arguments) -> Any:
    key, name, consumer, least, *rest = args
    stream, group = known(store, key, name)
    idle = max(0, _integer(least, "ERR Invalid min-idle-time argument for XCLAIM"))
    ids = list(map(read_id, takewhile(is_id, rest)))
    options = _Options(rest[len(ids) :], store.now_ms)
    group.last = max(group.last, options.last)
    claimed = [
        one for one in ids if _claims(store, key, stream, group, one, consumer, idle, options)
    ]
    return [words(one) if options.just else stream.shown(one) for one in claimed]


def _claims(
    store: Store, key: str, stream: Stream, group: Group, one: ID, consumer: str, idle: int,
    options: _Options,
) -> bool:  # fmt: skip
    """Claim one entry; return whether it was claimed. A deleted one is pending no longer."""
    its = group.pending.get(one)
    if one not in stream.entries:
        group.pending.pop(one, None)
        return False
    if its is None:
        if not options.force:
            return False
        its = group.pending[one] = Pending(consumer, store.now_ms, 0)
    elif idle and store.now_ms - its.since_ms < idle:
        return False
    meet(store, key, group, consumer)
    its.consumer = consumer
    its.since_ms = store.now_ms if options.since_ms is None else options.since_ms
    its.times = options.times if options.times >= 0 else its.times + (not options.just)
    return True


def _claim_idle(store: Store, args: Arguments) -> Any:
    """Claim entries that are pending for long; return where to continue, the entries, and the
    deleted ones, which are pending no longer."""
    key, name, consumer, least, start, *rest = args
    idle = max(0, _integer(least, "ERR Invalid min-idle-time argument for XAUTOCLAIM"))
    first = read_bound(start, False)
    count, just = 100, False
    while rest:
        word = rest.pop(0).upper()
        if word == "COUNT" and rest:
            count = _integer(rest.pop(0), "ERR COUNT must be > 0")
            if not 1 <= count <= _MOST:
                raise CommandError("ERR COUNT must be > 0")
        elif word == "JUSTID":
            just = True
        else:
            raise CommandError(SYNTAX)
    stream, group = known(store, key, name)
    left = [one for one in sorted(group.pending) if one >= first]
    claimed: list[ID] = []
    deleted: list[ID] = []
    tries = count * _TRIES
    while left and tries and len(claimed) + len(deleted) < count:
        one, tries = left.pop(0), tries - 1
        its = group.pending[one]
        if one not in stream.entries:
            del group.pending[one]
            deleted.append(one)
        elif store.now_ms - its.since_ms >= idle or not idle:
            meet(store, key, group, consumer)
            its.consumer, its.since_ms = consumer, store.now_ms
            its.times += not just
            claimed.append(one)
    shown = [words(one) if just else stream.shown(one) for one in claimed]
    return [words(left[0] if left else (0, 0)), shown, list(map(words, deleted))]


CLAIMS: dict[str, tuple[Command, int, int | None]] = {
    "XCLAIM": (_claim, 5, None),
    "XAUTOCLAIM": (_claim_idle, 5, None),
}
