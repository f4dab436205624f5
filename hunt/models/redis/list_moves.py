"""Redis' commands that move an element from one list to another (t_list.c of Redis 7.0).

Here BLMOVE and BRPOPLPUSH never block; the server lets the client wait (waiting.py).
"""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.redis.arguments import (
    SYNTAX,
    Arguments,
    Command,
    CommandError,
    emptied,
    value_of,
)
from fencepost.hunt.models.redis.lists import push_all, timeout_ms
from fencepost.hunt.models.redis.store import Store

_ENDS = ("LEFT", "RIGHT")


def moved(store: Store, source: str, target: str, ends: Arguments) -> str | None:
    """Move an element from one end of a list to an end of another one; None: there is none."""
    left, to_left = (_is_left(one) for one in ends)
    found = value_of(store, source, list)
    if found is None:
        return None
    value_of(store, target, list)
    value: str = found.pop(0 if left else -1)
    push_all(store, target, [value], to_left)
    store.signal("l", "lpop" if left else "rpop", source)
    if not found:
        emptied(store, source)
    return value


def _is_left(word: str) -> bool:
    if word.upper() not in _ENDS:
        raise CommandError(SYNTAX)
    return word.upper() == "LEFT"


def ends_of(name: str, args: Arguments) -> Arguments:
    """Return the ends that a command names; RPOPLPUSH and BRPOPLPUSH name none."""
    return args[2:4] if name in ("LMOVE", "BLMOVE") else ("RIGHT", "LEFT")


def _move(name: str) -> Command:
    def move(store: Store, args: Arguments) -> Any:
        ends = ends_of(name, args)
        for one in ends:
            _is_left(one)
        if name in WAITING_MOVES:
            timeout_ms(args[-1])
        return moved(store, args[0], args[1], ends)

    return move


WAITING_MOVES = frozenset({"BLMOVE", "BRPOPLPUSH"})
MOVES: dict[str, tuple[Command, int, int | None]] = {
    "LMOVE": (_move("LMOVE"), 4, 4),
    "RPOPLPUSH": (_move("RPOPLPUSH"), 2, 2),
    "BLMOVE": (_move("BLMOVE"), 5, 5),
    "BRPOPLPUSH": (_move("BRPOPLPUSH"), 3, 3),
}
