"""Redis' commands for sorted sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from math import isnan
from typing import Any

from fencepost.hunt.models.redis.arguments import (
    SYNTAX,
    Arguments,
    Command,
    CommandError,
    between,
    integer,
    lenient_number,
    made,
    remove,
    strict_number,
    value_of,
)
from fencepost.hunt.models.redis.replies import Scored, double
from fencepost.hunt.models.redis.store import Scores, Store

Test = Callable[[float, str], bool]
"""Whether a member with this score is in a range."""


def _add(store: Store, args: Arguments) -> Any:
    key, *rest = args
    options: set[str] = set()
    while rest and rest[0].upper() in ("NX", "XX", "GT", "LT", "CH", "INCR"):
        options.add(rest.pop(0).upper())
    _check(options, len(rest))
    numbers = [strict_number(text) for text in rest[::2]]
    found = value_of(store, key, Scores)
    if found is None and "XX" in options:
        return None if "INCR" in options else 0
    if found is None:
        store.lists_made[key] = None
    scores = made(store, key, Scores) if found is None else found
    changes = [
        _change(scores, member, score, options)
        for score, member in zip(numbers, rest[1::2], strict=True)
    ]
    if not scores:
        store.delete(key)
    if any(kind in ("added", "updated") for kind, _ in changes):
        store.signal("z", "zincr" if "INCR" in options else "zadd", key)
    if "INCR" in options:
        kind, score = changes[0]
        return double(score) if kind else None
    counted = ("added", "updated") if "CH" in options else ("added",)
    return sum(kind in counted for kind, _ in changes)


def _check(options: set[str], many: int) -> None:
    if many % 2 or not many:
        raise CommandError(SYNTAX)
    if {"NX", "XX"} <= options:
        raise CommandError("ERR XX and NX options at the same time are not compatible")
    if len({"NX", "GT", "LT"} & options) > 1:
        raise CommandError("ERR GT, LT, and/or NX options at the same time are not compatible")
    if "INCR" in options and many > 2:
        raise CommandError("ERR INCR option supports a single increment-element pair")


def _change(scores: Scores, member: str, score: float, options: set[str]) -> tuple[str, float]:
    """Set a member's score; return the kind of change, '' if an option forbids it, and the score.

    A score of -0 is shown in a reply, but not kept.
    """
    old = scores.get(member)
    if old is None:
        if "XX" in options:
            return "", score
        scores[member] = score + 0.0
        return "added", score
    if "NX" in options:
        return "", score
    if "INCR" in options:
        score += old
        if isnan(score):
            raise CommandError("ERR resulting score is not a number (NaN)")
    if ("GT" in options and score <= old) or ("LT" in options and score >= old):
        return "", score
    scores[member] = score + 0.0
    return "same" if score == old else "updated", score


def _remove(store: Store, args: Arguments) -> Any:
    return remove(store, args, Scores, "zrem")


def _remove_by_score(store: Store, args: Arguments) -> Any:
    inside = _in_scores(args[1], args[2])
    found = _scores(store, args[0])
    members = [member for member, score in found.items() if inside(score, member)]
    return remove(store, [args[0], *members], Scores, "zremrangebyscore")


def _scores(store: Store, key: str) -> Scores:
    return value_of(store, key, Scores) or Scores()


def _score(store: Store, args: Arguments) -> Any:
    found = _scores(store, args[0]).get(args[1])
    return None if found is None else double(found)


def _rank(reverse: bool) -> Command:
    def rank(store: Store, args: Arguments) -> Any:
        found = _scores(store, args[0])
        if args[1] not in found:
            return None
        place = found.ordered().index(args[1])
        return len(found) - 1 - place if reverse else place

    return rank


def _count(store: Store, args: Arguments) -> Any:
    inside = _in_scores(args[1], args[2])
    return sum(inside(score, member) for member, score in _scores(store, args[0]).items())


# Ranges.


@dataclass
class _Asked:
    """A range that a command asks for: `by` rank, score or text; `count` < 0: all."""

    by: str = ""
    reverse: bool = False
    scores: bool = False
    first: int = 0
    count: int = -1

    def take(self, words: list[str], allowed: tuple[str, ...]) -> None:
        """Take the options after the range."""
        while words:
            word = words.pop(0).upper()
            if word == "WITHSCORES":
                self.scores = True
            elif word == "LIMIT" and len(words) > 1:
                self.first, self.count = integer(words.pop(0)), integer(words.pop(0))
            elif word == "REV" in allowed and not self.reverse:
                self.reverse = True
            elif word in allowed and word != "REV" and not self.by:
                self.by = word
            else:
                raise CommandError(SYNTAX)
        if self.count != -1 and not self.by:
            raise CommandError(
                f"{SYNTAX}, LIMIT is only supported in combination with either BYSCORE or BYLEX"
            )
        if self.scores and self.by == "BYLEX":
            raise CommandError(f"{SYNTAX}, WITHSCORES not supported in combination with BYLEX")


def _range(by: str, reverse: bool, allowed: tuple[str, ...] = ()) -> Command:
    def range_of(store: Store, args: Arguments) -> Any:
        key, low, high, *words = args
        asked = _Asked(by, reverse)
        asked.take(words, allowed)
        if asked.by and asked.reverse:
            low, high = high, low
        choose = _chooser(asked, low, high)
        found = _scores(store, key)
        members = choose(found)
        if not asked.scores:
            return members
        return Scored(part for name in members for part in (name, double(found[name])))

    return range_of


def _chooser(asked: _Asked, low: str, high: str) -> Callable[[Scores], list[str]]:
    """Return the function that takes the range from a sorted set."""
    if not asked.by:
        first, last = integer(low), integer(high)
        return lambda found: between(_ordered(found, asked), first, last)
    inside = _in_scores(low, high) if asked.by == "BYSCORE" else None
    from_text, to_text = (None, None) if inside else (_text_bound(low), _text_bound(high))

    def choose(found: Scores) -> list[str]:
        members = _ordered(found, asked)
        if inside is not None:
            members = [name for name in members if inside(found[name], name)]
        else:
            assert from_text is not None and to_text is not None
            members = _in_texts(members, from_text, to_text, asked.reverse)
        return _limited(members, asked)

    return choose


def _ordered(found: Scores, asked: _Asked) -> list[str]:
    return found.ordered()[::-1] if asked.reverse else found.ordered()


def _limited(members: list[str], asked: _Asked) -> list[str]:
    if asked.first < 0:
        return []
    return members[asked.first :][: asked.count if asked.count >= 0 else None]


def _in_scores(low: str, high: str) -> Test:
    least, below = _score_bound(low)
    most, above = _score_bound(high)
    return lambda score, _: (
        (least < score or (score == least and not below))
        and (score < most or (score == most and not above))
    )


def _score_bound(text: str) -> tuple[float, bool]:
    """Return a bound of scores, and whether it is exclusive."""
    return lenient_number(text.removeprefix("(")), text.startswith("(")


Bound = tuple[bytes, bool]
"""A bound of texts, and whether it is exclusive. `_LEAST` is before, and `_MOST` after all."""
_LEAST, _MOST = (b"-", True), (b"+", True)


def _text_bound(text: str) -> Bound:
    if text in ("-", "+"):
        return _LEAST if text == "-" else _MOST
    if text[:1] not in ("(", "["):
        raise CommandError("ERR min or max not valid string range item")
    return _bytes(text[1:]), text[0] == "("


def _in_texts(members: list[str], low: Bound, high: Bound, reverse: bool) -> list[str]:
    """Return the part of a range by text. Redis assumes equal scores, and searches for the ends."""

    def is_after(name: str) -> bool:
        data = _bytes(name)
        return low is _LEAST or (low is not _MOST and (data > low[0] or low == (data, False)))

    def is_before(name: str) -> bool:
        data = _bytes(name)
        return high is _MOST or (high is not _LEAST and (data < high[0] or high == (data, False)))

    begins, lasts = (is_before, is_after) if reverse else (is_after, is_before)
    if not members or not (begins(members[-1]) and lasts(members[0])):
        return []
    rest = dropwhile(lambda name: not begins(name), members)
    return list(takewhile(lasts, rest))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


ZSETS: dict[str, tuple[Command, int, int | None]] = {
    "ZADD": (_add, 3, None),
    "ZINCRBY": (lambda store, args: _add(store, [args[0], "INCR", *args[1:]]), 3, 3),
    "ZSCORE": (_score, 2, 2),
    "ZRANK": (_rank(False), 2, 2),
    "ZREVRANK": (_rank(True), 2, 2),
    "ZCARD": (lambda store, args: len(_scores(store, args[0])), 1, 1),
    "ZCOUNT": (_count, 3, 3),
    "ZRANGE": (_range("", False, ("REV", "BYSCORE", "BYLEX")), 3, None),
    "ZREVRANGE": (_range("", True), 3, None),
    "ZRANGEBYSCORE": (_range("BYSCORE", False), 3, None),
    "ZREVRANGEBYSCORE": (_range("BYSCORE", True), 3, None),
    "ZREM": (_remove, 2, None),
    "ZREMRANGEBYSCORE": (_remove_by_score, 3, 3),
}
"""The commands, with their minimum and maximum numbers of arguments (commands.py)."""
